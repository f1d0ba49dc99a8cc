"""Where cubind stands in Inductor."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch._inductor.virtualized import V

from .._question import Choice
from .fusion import Fusion
from .kernel import Kernels, descends
from .product import FAILED, ServedNode, is_served, mark_of, narrowed, neighbourly
from .question import padding_question

if TYPE_CHECKING:
    from .._session import Session

Original = Callable[..., Any]  # what a hook stands for


class Hooks:
    """A session's hooks in Inductor, once gate.missing() has found nothing. They hold on all threads:
    Inductor's settings and its choices handler are thread-local, and torch compiles on several threads."""

    def __init__(self, session: Session) -> None:
        from torch._functorch._aot_autograd import autograd_cache
        from torch._inductor import async_compile, choices, codecache, ir, scheduler, select_algorithm
        from torch._inductor.fx_passes import pad_mm
        from torch._inductor.runtime import triton_heuristics

        self._session = session
        # tag: that its graph's key has; is_own: the session is not asked; is_deferred: the buffer decides
        self._thread = threading.local()
        self._patched: list[tuple[Any, str, Any]] = []
        self._selector = select_algorithm.get_algorithm_selector_cache()
        self._replace(codecache.FxGraphHashDetails, "__init__", self._tagged)
        self._replace(codecache.FxGraphCache, "_save_graph", self._save, staticmethod)
        self._replace(autograd_cache.AOTAutogradCache, "save", self._save, staticmethod)  # if it has the code
        self._replace(choices.InductorChoices, "_finalize_template_configs", self._narrowing)
        self._replace(choices.InductorChoices, "get_template_configs", self._serving)
        self._replace(ir.MultiTemplateBuffer, "__init__", self._deferring)
        self._replace(scheduler.Scheduler, "speedup_by_fusion", self._fusing)
        self._replace(pad_mm, "get_cached_should_pad", self._padding)
        self._replace(pad_mm, "is_padded_faster", self._padded)
        self._kernels = Kernels(session)
        tuner = triton_heuristics.CachingAutotuner
        self._replace(async_compile.AsyncCompile, "triton", self._compiling)
        self._replace(tuner, "autotune_to_one_config", self._autotuning)
        self._replace(tuner, "coordinate_descent_tuning", self._descending)
        self._selector.add_preprocessing_fn(self._only_served)
        self._selector.add_feedback_saver(self._feedback)
        _sessions.append(session)

    def let_go(self) -> None:
        """Nothing more is asked. A graph that is being compiled still says whether it may be cached."""
        if self._session in _sessions:
            _sessions.remove(self._session)

    def remove(self) -> None:
        """Leaves everything to Inductor again."""
        self.let_go()
        for target, name, original in reversed(self._patched):
            setattr(target, name, original)
        self._patched = []
        if self._only_served in self._selector.preprocessing_fns:
            self._selector.preprocessing_fns.remove(self._only_served)
        if self._feedback in self._selector.feedback_saver_fns:
            self._selector.feedback_saver_fns.remove(self._feedback)

    def _replace(self, target: Any, name: str, hook: Callable[..., Any], kind: Any = None) -> None:
        """hook: called with what it stands for, and that one's arguments."""
        original = getattr(target, name)

        @functools.wraps(original)
        def hooked(*args: Any, **kwargs: Any) -> Any:
            return hook(original, *args, **kwargs)

        self._patched.append((target, name, vars(target)[name]))
        setattr(target, name, hooked if kind is None else kind(hooked))

    def _tag(self) -> str:
        return self._session.tag if self._session in _sessions else ""

    # ---- What Inductor calls ----

    def _only_served(self, choices: list[Any]) -> list[Any]:
        """Without the templates that Inductor adds behind those that it asks its choices for."""
        return [choice for choice in choices if is_served(choice)][-1:] or choices

    def _feedback(self, timings: dict[Any, float], name: str, *_: Any) -> None:
        """Inductor goes on with this very dictionary."""
        if not any(map(mark_of, timings)):
            self._session.foreign(name)
        elif not getattr(self._thread, "is_deferred", False):
            taken = self._decided(timings, lambda _: {})
            for choice in list(timings):
                if choice is not taken:
                    del timings[choice]

    def _deferring(
        self,
        original: Original,
        buffer: Any,
        layout: Any,
        inputs: Any,
        choice_timings_fn: Any,
        unfiltered_choices: Any,
        allowed_prologue_inps: Any,
    ) -> None:
        """Of a product whose choice waits for what may be fused with it: its candidates without that."""

        def timings_of(hint_override: Any = None) -> dict[Any, float]:
            self._thread.is_deferred = True
            try:
                timings: dict[Any, float] = choice_timings_fn(hint_override)
            finally:
                self._thread.is_deferred = False
            if hint_override is not None or not timings:
                return timings
            taken = self._decided(timings, lambda fastest: neighbourly(buffer, timings, fastest))
            return {taken: min(timings.values()), **{c: t for c, t in timings.items() if c is not taken}}

        original(buffer, layout, inputs, timings_of, unfiltered_choices, allowed_prologue_inps)

    def _decided(self, timings: dict[Any, float], values: Callable[[Any], dict[str, int]]) -> Any:
        """The candidate that Inductor takes: its fastest, or the stored one."""
        fastest = min(timings, key=timings.__getitem__)
        mark, time_ms = mark_of(fastest), timings[fastest]
        if mark is None or mark.product.stored or not self._asks() or not 0.0 < time_ms < FAILED:
            return fastest
        question = mark.product.question
        own = Choice(mark.number, time_ms, values(fastest))
        stored = self._session.decide(question, own)
        for choice, time_ms in timings.items():
            if time_ms < FAILED and mark_of(choice) == (mark.product, stored.number):
                return choice
        self._session.differs(question, own)
        return fastest

    def _asks(self) -> bool:
        return self._session in _sessions and not getattr(self._thread, "is_own", False)

    def _fusing(self, original: Original, scheduler: Any, node1: Any, node2: Any) -> Any:
        try:
            fusion = Fusion.of(self._session, node1, node2) if self._asks() else None
        except Exception as error:
            self._session.stays_own(f"a fusion has no question: {type(error).__name__}: {error}"[:256])
            fusion = None
        if fusion is None:
            return original(scheduler, node1, node2)
        stored = self._session.ask(fusion.question)
        if stored is not None:
            return fusion.served(scheduler, stored)
        return fusion.measured(lambda: original(scheduler, node1, node2))

    def _padding(self, original: Original, key: str) -> bool | None:
        """None: Inductor measures it."""
        if not self._asks():
            return original(key)
        question = padding_question(key)
        if (stored := self._session.known(question)) is not None:
            return bool(stored.number)
        if (cached := original(key)) is None:
            self._session.refuse(question)
        return cached

    def _padded(self, original: Original, key: str, ori_time: float, pad_time: float) -> bool:
        is_faster: bool = original(key, ori_time, pad_time)
        time_ms = pad_time if is_faster else ori_time
        if not self._asks() or not 0.0 < time_ms < FAILED:
            return is_faster
        return bool(self._session.decide(padding_question(key), Choice(int(is_faster), time_ms)).number)

    def _compiling(
        self, original: Original, compiler: Any, kernel_name: str, source_code: str, device_str: str = "cuda"
    ) -> Any:
        try:
            if self._asks():
                self._kernels.compiles(kernel_name, source_code)
        except Exception as error:
            self._session.stays_own(f"a kernel has no question: {type(error).__name__}: {error}"[:256])
        return original(compiler, kernel_name, source_code, device_str)

    def _autotuning(self, original: Original, tuner: Any, *args: Any, **kwargs: Any) -> None:
        def measure() -> Any:
            original(tuner, *args, **kwargs)
            return tuner.launchers[0]

        if self._asks():
            tuner.launchers = [self._kernels.tuned(tuner, measure, not descends(tuner))]
        else:
            measure()

    def _descending(self, original: Original, tuner: Any, *args: Any, **kwargs: Any) -> Any:
        def measure() -> Any:
            return original(tuner, *args, **kwargs)

        return self._kernels.tuned(tuner, measure, True) if self._asks() and descends(tuner) else measure()

    def _tagged(self, original: Original, details: Any, *args: Any, **kwargs: Any) -> None:
        original(details, *args, **kwargs)
        self._thread.tag = self._tag()
        details.cache_key_tag = "+".join(filter(None, (details.cache_key_tag, self._thread.tag)))

    def _save(self, original: Original, *args: Any, **kwargs: Any) -> None:
        may_keep = self._session.may_keep()
        if may_keep and getattr(self._thread, "tag", "") == self._tag():
            original(*args, **kwargs)

    def _narrowing(
        self,
        original: Original,
        choices: Any,
        template_choices: Any,
        kernel_inputs: Any,
        templates: Any,
        op_name: str,
        kwarg_overrides: Any = None,
    ) -> list[Any]:
        found = original(choices, template_choices, kernel_inputs, templates, op_name, kwarg_overrides)
        if not self._asks():
            return found
        node = V.graph.current_node
        if getattr(self._thread, "node", None) is not node:
            self._thread.node, self._thread.earlier = node, []
        if len(found) > 1:
            return narrowed(self._session, self._thread.earlier, found, kernel_inputs, op_name)
        self._thread.earlier += found  # Inductor asks for torch's kernel by itself in some operations
        return found

    def _serving(self, original: Original, *args: Any, **kwargs: Any) -> list[Any]:
        choices = original(*args, **kwargs)
        if not choices:  # the stored candidate's template has no kernel for these inputs
            self._thread.is_own = True
            try:
                choices = original(*args, **kwargs)
            finally:
                self._thread.is_own = False
        for choice in choices:
            if is_served(choice) and (product := mark_of(choice).product).stored.values:
                choice.output_node = ServedNode(product, choice)
        return choices


_sessions: list[Session] = []  # the installed one
