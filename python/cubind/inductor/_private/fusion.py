"""Whether a product is fused with a neighbour."""

from __future__ import annotations

import concurrent.futures
import json
import re
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._question import Choice, Question, make_question
from .product import FAILED, Product, mark_of

if TYPE_CHECKING:
    from .._session import Session


class Fusion:
    """Whether a product is fused with a neighbour, and which candidate then computes both: number 0 says that
    it is not, the others are the product's from 1. A choice's WHEN says when Inductor decided it: at once,
    later, or once another process had compiled it."""

    def __init__(self, session: Session, buffer: Any, product: Product, question: Question) -> None:
        self.question = question
        self._session = session
        self._buffer = buffer
        self._product = product

    @classmethod
    def of(cls, session: Session, node1: Any, node2: Any) -> Fusion | None:
        """None: neither is a product with a question."""
        from torch._inductor import ir

        before = node1.get_template_node() is not None
        buffer = (node1 if before else node2).get_template_node()
        if not isinstance(buffer, ir.MultiTemplateBuffer):
            return None
        mark = next((mark for each in buffer.choices if (mark := mark_of(each))), None)
        if mark is None:
            return None
        asked = mark.product.question
        kind = "epilogue" if before else "prologue"
        text = json.dumps([asked.digest, kind, _nodes_text([*node1.get_nodes(), *node2.get_nodes()])])
        candidates = ["apart", *asked.candidates]
        what = f"{kind} of {asked.what}"
        return cls(
            session,
            buffer,
            mark.product,
            make_question(text, candidates, what, asked.toolchain, asked.device),
        )

    def served(self, scheduler: Any, stored: Choice) -> Any:
        """Inductor's result, at the time when it was decided: other fusions come before and after it."""
        from torch._inductor.scheduler import FusionResult

        when = stored.values.get("WHEN", _AT_ONCE)
        if scheduler._has_layout_conflict_for_template(self._buffer):
            return FusionResult.fuse(False)
        if when == _AT_ONCE:
            return FusionResult.fuse(self._done(stored.number))
        done: concurrent.futures.Future[None] = concurrent.futures.Future()
        done.set_result(None)
        future = types.SimpleNamespace(future=done) if when == _ELSEWHERE else None
        return FusionResult.from_callable(lambda: self._done(stored.number), future)

    def measured(self, call: Callable[[], Any]) -> Any:
        """Inductor's result of that call, or the stored one. Of a served product the call waits until the
        result is needed: one that the first process did not need is not stored."""
        from torch._inductor.scheduler import FusionResult

        if self._product.stored is not None:
            return FusionResult.from_callable(lambda: self._measured_now(call))
        before = self._state()
        result = call()
        if result.callable_fn is None:
            return FusionResult.fuse(self._decided(before, result.should_fuse, _AT_ONCE))
        when = _LATER if result.future is None else _ELSEWHERE
        return FusionResult.from_callable(
            lambda: self._decided(self._state(), result.callable_fn(), when), result.future
        )

    def _measured_now(self, call: Callable[[], Any]) -> bool:
        self._add_fastest_template()
        before = self._state()
        result = call()
        fuses = result.should_fuse if result.callable_fn is None else result.callable_fn()
        return self._decided(before, fuses, _LATER)

    def _add_fastest_template(self) -> None:
        """Inductor measures it where a served product is to be fused for the first time."""
        stored = self._product.stored
        number, time_ns = stored.values.get("TEMPLATE", -1), stored.values.get("TEMPLATE_NS", 0)
        if (
            0 <= number < len(self._product.found)
            and number != stored.number
            and (caller := self._product.caller(number)) is not None
        ):
            self._buffer.choice_timings().setdefault(caller, time_ns / 1e6)
            if caller not in self._buffer.choices:
                self._buffer.choices.append(caller)

    def _state(self) -> tuple[Any, dict[Any, Any]]:
        return self._buffer.make_kernel_render, dict(self._buffer._choice_timings)

    def _decided(self, before: tuple[Any, dict[Any, Any]], is_fused: bool, when: int) -> bool:
        number = 0
        if is_fused:
            render = self._buffer.make_kernel_render
            callers = (c for c in self._buffer.choices if getattr(c, "make_kernel_render", None) is render)
            if (mark := mark_of(next(callers, None))) is None:
                return True
            number = 1 + mark.number
        times = self._buffer._choice_timings.get(None, {}).values()
        time_ms = min((each for each in times if 0.0 < each < FAILED), default=_ANY_TIME)
        stored = self._session.decide(self.question, Choice(number, time_ms, {"WHEN": when}))
        if stored.number == number:
            return is_fused
        self._buffer.make_kernel_render, self._buffer._choice_timings = before
        return self._done(stored.number)

    def _done(self, number: int) -> bool:
        if number == 0:
            return False
        try:
            self._buffer.finalize_as_triton_caller(self._product.caller(number - 1))
        except Exception as error:
            self._session.stays_own(
                f"a product is not fused as stored: {type(error).__name__}: {error}"[:256]
            )
            self._session.differs(self.question, Choice(0, _ANY_TIME))
            return False
        return True


_AT_ONCE, _LATER, _ELSEWHERE = range(3)
_ANY_TIME = 1e-3  # ms: a record has one
_QUOTED = re.compile(r"'(\w+)'")


def _nodes_text(nodes: list[Any]) -> list[Any]:
    """What they compute. Buffers are numbered, since their names depend on the rest of the graph."""
    found = [each.node.get_layout() for each in nodes]
    layouts = [[str(each.dtype), str(each.size), str(each.stride), str(each.offset)] for each in found]
    bodies = [_body_text(each) for each in nodes]
    known = {dep.name for each in nodes for dep in each.read_writes.reads | each.read_writes.writes}
    numbers: dict[str, int] = {}

    def numbered(quoted: re.Match[str]) -> str:
        name = quoted[1]
        return str(numbers.setdefault(name, len(numbers))) if name in known else quoted[0]

    return [[_QUOTED.sub(numbered, body), layout] for body, layout in zip(bodies, layouts)]


def _body_text(node: Any) -> str:
    if (body := getattr(node, "_body", None)) is not None:
        return body.debug_str()
    return f"product {[node.node.get_name(), *(each.get_name() for each in node.node.inputs)]}"
