"""What cubind uses of Inductor beyond its documented interface: all of it is here.

missing() says whether this PyTorch has all of it, in the form that is known. Import this only after torch.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import torch

from ..errors import SealedError
from ._question import Question, make_question

if TYPE_CHECKING:
    from ._session import Session

_MARK = "cubind"  # among the annotations of a candidate and of its caller
_DEPTH = 8  # users of a product's users that may be fused with it
_DEPTH_BEFORE = 3  # inputs of a product's inputs that may be
_MOST_NODES = 64
# By module: names, with the parameters of functions.
_NAMES: dict[str, dict[str, str | None]] = {
    "torch._inductor.choices": {
        "InductorChoices._finalize_template_configs": "self template_choices kernel_inputs templates op_name kwarg_overrides",
        "InductorChoices.get_template_configs": "self kernel_inputs templates op_name kwarg_overrides",
    },
    "torch._inductor.kernel_template_choice": {
        "KernelTemplateChoice.__init__": "self template params extra_kwargs layout inputs",
        "KernelTemplateChoice.choice": None,
    },
    "torch._inductor.kernel_inputs": {
        "KernelInputs.shapes_hinted": "self",
        "KernelInputs.strides_hinted": "self",
        "KernelInputs.shapes_symbolic": "self",
        "KernelInputs.dtypes": "self",
        "KernelInputs.nodes": "self reorder",
        "KernelInputs.device": "self",
        "KernelInputs.out_dtype": "self",
    },
    "torch._inductor.select_algorithm": {
        "get_algorithm_selector_cache": "",
        "AlgorithmSelectorCache.add_feedback_saver": "self fn",
        "AlgorithmSelectorCache.add_preprocessing_fn": "self fn",
    },
    "torch._inductor.ir": {
        "MultiTemplateBuffer.choice_timings": "self hint_override",
        "MultiTemplateBuffer.finalize_as_triton_caller": "self caller",
        "MultiTemplateBuffer.choices": None,
    },
    "torch._inductor.codecache": {
        "FxGraphCache._save_graph": "key compiled_graph example_inputs local remote_cache",
        "FxGraphHashDetails.__init__": "self gm example_inputs fx_kwargs inputs_to_check",
    },
    "torch._functorch._aot_autograd.autograd_cache": {"AOTAutogradCache.save": "key entry remote"},
    "torch._inductor.config": {"inductor_choices_class": None, "save_config_portable": None},
    "torch.compiler.config": {"cache_key_tag": None},
}


def missing() -> str:
    """What this PyTorch lacks, or has in another form; "" if nothing."""
    for module_name, names in _NAMES.items():
        try:
            module = importlib.import_module(module_name)
        except ImportError:
            return module_name
        for path, parameters in names.items():
            if not _is_known(module, path, parameters):
                return f"{module_name}.{path}"
    return ""


def _is_known(module: Any, path: str, parameters: str | None) -> bool:
    found = module
    for name in path.split("."):
        if not hasattr(found, name):
            return False
        found = getattr(found, name)
    return parameters is None or list(inspect.signature(found).parameters) == parameters.split()


# ---- In and out ----


class Hooks:
    """A session's hooks in Inductor, once missing() has found nothing. They hold on all threads: Inductor's
    settings and its choices handler are thread-local, and torch compiles on several threads."""

    def __init__(self, session: Session) -> None:
        from torch._functorch._aot_autograd import autograd_cache
        from torch._inductor import choices, codecache, ir, select_algorithm

        self._session = session
        self._thread = threading.local()  # tag: that its graph's key has; is_own: the session is not asked
        self._patched: list[tuple[Any, str, Any]] = []
        self._selector = select_algorithm.get_algorithm_selector_cache()
        self._replace(codecache.FxGraphHashDetails, "__init__", self._tagged)
        self._replace(codecache.FxGraphCache, "_save_graph", self._save, staticmethod)
        self._replace(autograd_cache.AOTAutogradCache, "save", self._save, staticmethod)  # if it has the code
        self._replace(choices.InductorChoices, "_finalize_template_configs", self._narrowing)
        self._replace(choices.InductorChoices, "get_template_configs", self._marking)
        self._replace(ir.MultiTemplateBuffer, "choice_timings", self._choice_timings)
        self._replace(ir.MultiTemplateBuffer, "finalize_as_triton_caller", self._finalize)
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

    def _replace(self, target: Any, name: str, wrap: Callable[..., Any], kind: Any = None) -> None:
        self._patched.append((target, name, vars(target)[name]))
        wrapped = functools.wraps(getattr(target, name))(wrap(getattr(target, name)))
        setattr(target, name, wrapped if kind is None else kind(wrapped))

    def _tag(self) -> str:
        return self._session.tag if self._session in _sessions else ""

    # ---- What Inductor calls ----

    def _only_served(self, choices: list[Any]) -> list[Any]:
        """Without the templates that Inductor adds behind those that it asks its choices for."""
        return [choice for choice in choices if _mark_of(choice) is _SERVED] or choices

    def _feedback(self, timings: dict[Any, float], name: str, *_: Any) -> None:
        """Inductor goes on with this very dictionary."""
        left = self._left(timings)
        if left is None:
            self._session.foreign(name)
            return
        for choice in list(timings):
            if choice not in left:
                del timings[choice]

    def _left(self, timings: dict[Any, float]) -> dict[Any, float] | None:
        """None: no candidate is marked."""
        marks = {choice: mark for choice in timings if (mark := _mark_of(choice)) is not None}
        if not marks:
            return None
        taken = self._session.timed({mark: timings[choice] for choice, mark in marks.items()})
        if len(taken) == len(marks):
            return timings
        return {choice: timings[choice] for choice, mark in marks.items() if mark in taken}

    def _choice_timings(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def choice_timings(buffer: Any, hint_override: Any = None) -> Any:
            timings = original(buffer, hint_override)
            return timings if hint_override is not None else self._left(timings) or timings

        return choice_timings

    def _finalize(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def finalize_as_triton_caller(buffer: Any, caller: Any) -> None:
            mark = _mark_of(caller)
            if mark is not None and mark is not _SERVED:
                stored = self._session.final(mark)
                others = (each for each in buffer.choices if _mark_of(each) == stored)
                taken = next(others, None)
                if type(taken) is type(caller):
                    caller = taken
                else:
                    self._session.differs(mark)
            original(buffer, caller)

        return finalize_as_triton_caller

    def _tagged(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def init(details: Any, *args: Any, **kwargs: Any) -> None:
            original(details, *args, **kwargs)
            self._thread.tag = self._tag()
            details.cache_key_tag = "+".join(filter(None, (details.cache_key_tag, self._thread.tag)))

        return init

    def _save(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def save(*args: Any, **kwargs: Any) -> None:
            may_keep = self._session.may_keep()
            if may_keep and getattr(self._thread, "tag", "") == self._tag():
                original(*args, **kwargs)

        return save

    def _narrowing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def _finalize_template_configs(
            choices: Any,
            template_choices: Any,
            kernel_inputs: Any,
            templates: Any,
            op_name: str,
            kwarg_overrides: Any = None,
        ) -> list[Any]:
            found = original(choices, template_choices, kernel_inputs, templates, op_name, kwarg_overrides)
            if self._session not in _sessions or getattr(self._thread, "is_own", False):
                return found
            return _narrowed(self._session, found, kernel_inputs, op_name)

        return _finalize_template_configs

    def _marking(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def get_template_configs(*args: Any, **kwargs: Any) -> list[Any]:
            choices = original(*args, **kwargs)
            if not choices:  # the stored candidate's template has no kernel for these inputs
                self._thread.is_own = True
                try:
                    choices = original(*args, **kwargs)
                finally:
                    self._thread.is_own = False
            for choice in choices:
                mark = _mark_of(choice)
                if mark is not None and mark is not _SERVED:
                    choice.output_node = _Final(self._session, mark, choice.output_node)
            return choices

        return get_template_configs


class _Served:
    """The mark of a candidate that is the only one."""


_SERVED = _Served()
_sessions: list[Session] = []  # the installed one


def _mark_of(choice: Any) -> Any:
    return getattr(choice, "annotations", {}).get(_MARK)


class _Final:
    """A candidate's output_node(), which Inductor calls when it has taken that candidate."""

    def __init__(self, session: Session, mark: Any, original: Callable[[], Any]) -> None:
        self._session = session
        self._mark = mark
        self._original = original

    def __call__(self) -> Any:
        if self._session in _sessions and self._session.final(self._mark) != self._mark:
            self._session.differs(self._mark)
        return self._original()


def _narrowed(session: Session, found: list[Any], inputs: Any, op_name: str) -> list[Any]:
    if len(found) < 2 or not is_for_gpu(inputs):
        return found
    try:
        left = session.narrow(question_of(found, inputs, op_name))
    except SealedError:
        raise
    except Exception as error:
        session.stays_own(f"has no question: {type(error).__name__}: {error}"[:256])
        return found
    if isinstance(left, int):
        found[left].annotations[_MARK] = _SERVED  # .choice would make it, with a layout that may change
        return [found[left]]
    for candidate, mark in zip(found, left):
        candidate.annotations[_MARK] = mark
    return found


# ---- Questions ----


def is_for_gpu(inputs: Any) -> bool:
    """Whether the product runs on an NVIDIA GPU."""
    return bool(inputs.device().type == "cuda" and torch.version.hip is None)


def what(inputs: Any, op_name: str) -> str:
    """A product for a reader: "addmm 768x4096x512 bf16"."""
    shapes = " by ".join("x".join(map(str, shape)) for shape in inputs.shapes_hinted())
    return f"{op_name} {shapes} {str(inputs.out_dtype()).removeprefix('torch.')}"


def candidate_text(candidate: Any) -> str:
    """What distinguishes a candidate from all others of its question: the template with its source, and the
    template's parameters."""
    template = candidate.template
    parameters = json.dumps(candidate.params.to_kwargs(), sort_keys=True, default=_text)
    return f"{template.uid} {getattr(template, 'src_hash', None)} {parameters}"


def question_of(found: list[Any], inputs: Any, op_name: str) -> Question:
    """Everything that the choice may depend on, as canonical JSON. The order of the candidates counts. Raises
    FailedPreconditionError where only this process could ask it."""
    candidates = [candidate_text(each) for each in found]
    index = inputs.device().index
    told = {
        "format": "cubind.inductor/1",
        "op": op_name,
        "inputs": _inputs(inputs),
        "out_dtype": str(inputs.out_dtype()),
        "scalars": getattr(inputs, "_scalars", {}),
        "candidates": candidates,
        "around": _around(),
        "settings": _settings(),
        "device": device_text(index),
        "versions": versions(),
    }
    text = json.dumps(told, sort_keys=True, default=_text)
    return make_question(text, candidates, what(inputs, op_name), " ".join(versions()), index or 0)


def _inputs(inputs: Any) -> list[Any]:
    told = zip(
        inputs.nodes(),
        inputs.dtypes(),
        inputs.shapes_hinted(),
        inputs.shapes_symbolic(),
        inputs.strides_hinted(),
    )
    return [
        {
            "dtype": str(dtype),
            "size": list(shape),
            "is_dynamic": [not _is_number(size) for size in symbolic],
            "stride": list(stride),
            "layout": [type(node.get_layout()).__name__, str(node.get_layout().offset)],
        }
        for node, dtype, shape, symbolic, stride in told
    ]


def _is_number(size: Any) -> bool:
    return isinstance(size, int) or bool(getattr(size, "is_number", False))


def _text(value: Any) -> Any:
    """Of settings and parameters that JSON has no form for."""
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return str(value)


def _settings() -> dict[str, Any]:
    """As Inductor's own key of a graph has them."""
    settings = torch._inductor.config.save_config_portable(ignore_private_configs=False)
    settings.pop("inductor_choices_class", None)
    products = torch.backends.cuda.matmul
    return {
        "inductor": settings,
        "precision": torch.get_float32_matmul_precision(),
        "reduced": [
            str(products.allow_fp16_reduced_precision_reduction),
            str(products.allow_bf16_reduced_precision_reduction),
            str(products.allow_fp16_accumulation),
        ],
        "deterministic": torch.are_deterministic_algorithms_enabled(),
    }


def device_text(index: int | None) -> list[Any]:
    """What makes GPUs the same for a choice."""
    if not torch.cuda.is_available():
        return ["cpu"]
    gpu = torch.cuda.get_device_properties(index if index is not None else torch.cuda.current_device())
    return [gpu.name, gpu.major, gpu.minor, gpu.multi_processor_count, gpu.L2_cache_size]


def versions() -> list[str]:
    """Of all that makes and times the code."""
    try:
        triton = importlib.import_module("triton").__version__
    except ImportError:
        triton = None
    libraries = [torch.version.cuda, triton]
    return [str(each) for each in (torch.__version__, torch.version.git_version, *libraries)]


# ---- What the graph computes around a product, with which Inductor may fuse it ----


def _around() -> list[Any]:
    from torch._inductor.virtualized import V

    node = V.graph.current_node
    return [] if node is None else described(node)


def described(node: Any) -> list[Any]:
    """The node, its inputs, and what is computed of its result. The names of nodes are not in it, nor what
    the graph gives besides."""
    nodes = _near(node)
    numbers = {each: number for number, each in enumerate(nodes)}
    return [
        [
            [str(each.target), *_dimensions(each)] if each.op == "call_function" else each.op,
            [numbers.get(before, -1) for before in each.all_input_nodes] if each.op != "output" else [],
            [_value(value) for value in _values(each.meta.get("val"))] if each.op != "output" else [],
        ]
        for each in nodes
    ]


def _near(node: Any) -> list[Any]:
    """Breadth first, in the graph's order."""
    order = {each: number for number, each in enumerate(node.graph.nodes)}
    found, last = [node], [node]
    for _ in range(_DEPTH_BEFORE):
        last = list(dict.fromkeys(before for each in last for before in each.all_input_nodes))
        found += [before for before in last if before not in found]
    last = [node]
    for _ in range(_DEPTH):
        users = sorted({user for each in last for user in each.users}, key=order.__getitem__)
        last = [user for user in users if user not in found]
        found += last
    return found[:_MOST_NODES]


def _dimensions(node: Any) -> list[Any]:
    """Those that it permutes or reduces, which the sizes of its result need not tell."""
    return [
        list(value)
        for value in node.args
        if isinstance(value, (list, tuple)) and all(isinstance(each, int) for each in value)
    ]


def _values(value: Any) -> Iterable[Any]:
    return value if isinstance(value, (list, tuple)) else [value]


def _value(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    sizes, strides = (
        "x".join("dynamic" if isinstance(size, torch.SymInt) else str(size) for size in each)
        for each in (value.shape, value.stride())
    )
    return f"{value.dtype} {sizes} {strides}"
