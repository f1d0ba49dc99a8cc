"""Calls of a kernel on tensors of torch that repeat an earlier one, but for sizes, addresses and scalars:
launched without Python's checks, as operators are."""

from __future__ import annotations

import operator
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from . import _core, arrays
from ._interface import Interface
from ._torch_access import PLAIN, access
from .errors import CubindError, InvalidArgumentError

_SCRATCH, NOTHING = -1, -2  # instead of a place among the values of a call


class Layout(NamedTuple):
    """What calls with the same names, and the same parts of the problem, have in common. known: the dims that
    are no tensor's, -1 for the others. type, device: those of one call."""

    dims: tuple[str, ...]
    inputs: dict[str, str]
    outputs: dict[str, str]
    numbers: tuple[str, ...]
    known: list[int]
    type: str
    device: int


class Repeated:
    """Calls of one layout. until: time.monotonic() seconds when the variants are asked for again."""

    def __init__(self, layout: Layout, native: _core.OperatorCall, until: float) -> None:
        self.layout = layout
        self.native = native
        self.until = until
        first, *others = (*layout.inputs, *layout.numbers)
        self._given = operator.itemgetter(first, *others) if others else lambda named: (named[first],)

    def __call__(self, stream: int | None, named: Mapping[str, Any]) -> Any:
        """What Kernel returns. NotImplemented: nothing was launched."""
        if self.until <= time.monotonic():
            return NotImplemented
        return self.native.launch_on(stream, *self._given(named))


def repeated(
    layout: Layout,
    variants: Sequence[tuple[_core.Kernel, tuple[_core.Parameter, ...]]],
    until: float,
    earlier: Repeated | None,
) -> Repeated | None:
    """Calls that these variants launch. earlier: of the same names. None: a call has too many values."""
    if earlier is not None and earlier.layout[:5] == layout[:5] and earlier.until > time.monotonic():
        native, until = earlier.native, min(until, earlier.until)
    else:
        shapes = list(layout.inputs.values()), list(layout.outputs.values())
        numbers = len(layout.numbers)
        try:
            native = _core.OperatorCall(access(), layout.dims, *shapes, (), numbers, (), 0, layout.known)
        except CubindError:
            return None
    names = (*layout.inputs, *layout.outputs, *layout.numbers)
    orders = [(kernel, order_of(parameters, names), False) for kernel, parameters in variants]
    native.know(layout.type, layout.device, (), orders)
    return Repeated(layout, native, until)


def layout_of(
    interface: Interface,
    fixed: Mapping[str, Any],
    named: Mapping[str, Any],
    made: Mapping[str, torch.Tensor],
    dims: tuple[int, ...],
    parameters: tuple[_core.Parameter, ...],
) -> Layout | None:
    """The layout of a call that was checked and launched; None if the fast path does not apply. fixed: parts
    of the problem that no call gives. made: the outputs that were left out. parameters: the kernel's."""
    sources = {name: source for name, source, *_ in parameters}
    tensors = {name: value for name, value in named.items() if sources.get(name) == "buffer"}
    numbers = {name: value for name, value in named.items() if sources.get(name) not in ("buffer", None)}
    parts = {name: value for name, value in named.items() if name not in sources}
    if (
        not tensors
        or any(type(value) not in PLAIN for value in (*tensors.values(), *made.values()))
        or not all(isinstance(value, (int, float)) for value in numbers.values())
        or any(type(value) not in (int, str, torch.dtype) for value in parts.values())
    ):
        return None
    patterns = _Patterns(interface, tensors, made, {name for name, *_, role in parameters if role == "zero"})
    read = patterns.dims - parts.keys() - fixed.keys()
    known = [-1 if name in read else size for name, size in zip(interface.dims, dims)]
    device = next(iter(tensors.values())).get_device()
    return Layout(
        interface.dims, patterns.inputs, patterns.outputs, tuple(numbers), known, patterns.type, device
    )


def order_of(parameters: Iterable[_core.Parameter], names: tuple[str, ...]) -> list[int]:
    """The place of each parameter among the names of a call's values; NOTHING for a buffer that the call does
    not have: it has to be without elements. Raises InvalidArgumentError for a number that is missing."""
    order = []
    for name, source, _, role in parameters:
        if name not in names and source != "buffer":
            raise InvalidArgumentError(f"the call has no such argument (it has {', '.join(names)})", name)
        nowhere = _SCRATCH if role == "scratch" else NOTHING
        order.append(names.index(name) if name in names else nowhere)
    return order


class _Patterns:
    """Shape patterns: of the spec's shapes, where they are made of dims and numbers, else of these very
    tensors. dims: those that are read from tensors. type: of the first tensor of a type of the problem."""

    def __init__(
        self,
        interface: Interface,
        tensors: Mapping[str, torch.Tensor],
        made: Mapping[str, torch.Tensor],
        cleared: set[str],
    ) -> None:
        self._interface = interface
        shapes = {name: interface.shapes.get(name, ()) for name in (*tensors, *made)}
        is_general = all(
            axes and all(axis in interface.dims or axis.isdigit() for axis in axes)
            for axes in shapes.values()
        )
        self.dims = {axis for name in tensors for axis in shapes[name]} if is_general else set()
        bound = [interface.buffer_types[name] for name in tensors]
        self._free = next((name for name in bound if name in interface.types), None)
        free = next((name for name in tensors if interface.buffer_types[name] == self._free), None)
        self.type = "f32" if free is None else arrays.facts_of(free, tensors[free]).dtype
        given = {shapes[name] for name in tensors}
        self.inputs, self.outputs = (
            {
                name: self._pattern(name, tensor, shapes[name] if is_general else (), shapes[name] in given)
                for name, tensor in group.items()
            }
            for group in (tensors, made)
        )
        for name in cleared & made.keys():
            self.outputs[name] += " zero"

    # Star: any number of axes may stand for the first one.
    def _pattern(self, name: str, tensor: torch.Tensor, axes: tuple[str, ...], star: bool) -> str:
        words = list(axes) or [str(size) for size in tensor.shape]
        if axes and star:
            words[0] += "*"
        if self._interface.buffer_types[name] != self._free:
            words.append(arrays.facts_of(name, tensor).dtype)
        return " ".join(words)
