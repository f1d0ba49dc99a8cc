"""A product whose choice is asked for, and its candidates."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch._inductor.virtualized import V
from torch.utils._ordered_set import OrderedSet

from ...errors import FailedPreconditionError, SealedError
from .._question import Choice, Question
from .question import is_for_gpu, question_of

if TYPE_CHECKING:
    from .._session import Session

_MARK = "cubind"  # among the annotations of a candidate and of its caller
FAILED = float("inf")  # ms of a candidate that does not run


@dataclasses.dataclass(eq=False)
class Product:
    """found: its candidates, as Inductor is about to make them. stored: the only one that it makes."""

    question: Question
    found: list[Any]
    inputs: Any
    stored: Choice | None

    def caller(self, number: int) -> Any:
        """The candidate, which is made now if it has not been: as long as there is no scheduler."""
        graph, candidate = V.graph, self.found[number]
        if self.stored is not None:
            candidate.layout = self.found[self.stored.number].layout
        scheduler, graph.scheduler = graph.scheduler, None
        try:
            return candidate.choice
        finally:
            graph.scheduler = scheduler


class Mark(NamedTuple):
    product: Product
    number: int


def mark_of(choice: Any) -> Mark | None:
    return getattr(choice, "annotations", {}).get(_MARK)


def is_served(choice: Any) -> bool:
    mark = mark_of(choice)
    return mark is not None and mark.product.stored is not None and mark.product.stored.number == mark.number


def narrowed(session: Session, earlier: list[Any], found: list[Any], inputs: Any, op_name: str) -> list[Any]:
    if not is_for_gpu(inputs):
        return found
    try:
        if torch._inductor.config.multi_kernel_hints:
            raise FailedPreconditionError("Inductor chooses one for each size", "multi_kernel_hints")
        candidates = [*earlier, *found]
        question = question_of(candidates, inputs, op_name)
        product = Product(question, candidates, inputs, session.ask(question))
    except SealedError:
        raise
    except Exception as error:
        session.stays_own(f"a product has no question: {type(error).__name__}: {error}"[:256])
        return found
    for number, candidate in enumerate(candidates):
        candidate.annotations[_MARK] = Mark(product, number)
    return found if product.stored is None else [candidates[product.stored.number]]


# ---- A product that may be fused with its neighbours ----


def neighbourly(buffer: Any, timings: dict[Any, float], fastest: Any) -> dict[str, int]:
    """The values of its choice. PLANNABLE: its result may be written into a larger tensor. PROLOGUES: a bit
    for each input that may be computed in its kernel. TEMPLATE, TEMPLATE_NS: the fastest one (-1: none)."""
    product = mark_of(fastest).product
    names = [node.get_name() for node in product.inputs.nodes()]
    prologues = sum(1 << at for at, name in enumerate(names) if name in buffer.allowed_prologue_inps)
    templates = [
        (time_ms, mark.number)
        for choice, time_ms in timings.items()
        if (mark := mark_of(choice)) and mark.product is product and time_ms < FAILED
        if not _is_extern(product.found[mark.number])
    ]
    time_ms, number = min(templates, default=(0.0, -1))
    return {
        "PLANNABLE": int(buffer.output_plannable),
        "PROLOGUES": prologues,
        "TEMPLATE": number,
        "TEMPLATE_NS": int(1e6 * time_ms),
    }


def _is_extern(candidate: Any) -> bool:
    return isinstance(candidate.template, torch._inductor.select_algorithm.ExternKernelChoice)


class ServedNode:
    """output_node() of a product's only candidate: for the first time a buffer like the one that Inductor has
    for all candidates."""

    def __init__(self, product: Product, caller: Any) -> None:
        self._product = product
        self._caller = caller
        self._original = caller.output_node

    def __call__(self) -> Any:
        from torch._inductor import ir

        self._caller.output_node = self._original
        product = self._product
        others = [
            caller
            for number, candidate in enumerate(product.found)
            if _is_extern(candidate) and number != product.stored.number
            if (caller := product.caller(number)) is not None
        ]  # which Inductor takes where a template's layout does not fit
        times = {self._caller: product.stored.time_ms, **dict.fromkeys(others, FAILED)}
        values, inputs = product.stored.values, product.inputs.nodes()
        prologues = values.get("PROLOGUES", 0)
        names = OrderedSet(node.get_name() for at, node in enumerate(inputs) if prologues >> at & 1)
        buffer = ir.MultiTemplateBuffer(
            self._caller.layout, inputs, lambda _=None: dict(times), list(times), names
        )
        buffer._output_plannable = bool(values.get("PLANNABLE", 0))
        return ir.TensorBox.create(buffer)
