"""What a kernel takes, as its spec declares it, and what of a problem can be read from arrays."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from . import arrays
from ._wire import Problem
from .errors import InvalidArgumentError


@dataclasses.dataclass(frozen=True)
class Interface:
    """dims, types, flags: the names of a problem, in the spec's order. buffer_types: the type of each buffer,
    by its name: a type of the problem, or an element type. shapes: of the buffers whose spec gives them,
    outermost axis first; an axis is a dim's name or an expression."""

    dims: tuple[str, ...]
    types: tuple[str, ...]
    flags: tuple[str, ...]
    buffer_types: Mapping[str, str]
    shapes: Mapping[str, tuple[str, ...]]

    @property
    def names(self) -> frozenset[str]:
        """What of a call belongs to the problem."""
        return frozenset((*self.dims, *self.types, *self.flags, "scenario"))


def interface_of(kernel: Mapping[str, Any]) -> Interface:
    """From an entry of Client.kernels()."""
    buffers = [argument for argument in kernel.get("arguments", []) if argument["source"] == "buffer"]
    return Interface(
        dims=tuple(kernel["dims"]),
        types=tuple(choices.partition("=")[0] for choices in kernel["types"]),
        flags=tuple(flag["name"] for flag in kernel.get("flags", [])),
        buffer_types={buffer["name"]: buffer["type"] for buffer in buffers},
        shapes={buffer["name"]: tuple(buffer["shape"]) for buffer in buffers if buffer["shape"]},
    )


def complete_problem(interface: Interface, problem: Problem, given: Mapping[str, Any]) -> Problem:
    """The problem with the dims and types that it lacks, read from the arrays. An array may have more axes
    than its spec: the first ones together are the spec's first. Raises InvalidArgumentError for what is
    missing, and for an array whose shape contradicts the problem."""
    found: Problem = {}
    for name, array in given.items():
        if name in interface.buffer_types and not isinstance(array, (int, type(None))):
            _read(interface, name, arrays.facts_of(name, array), {**found, **problem}, found)
    complete = {**found, **problem}
    missing = [name for name in (*interface.dims, *interface.types) if name not in complete]
    if missing:
        raise InvalidArgumentError(
            f"is missing: pass {', '.join(f'{name}=...' for name in missing)} in the call, or to client.kernel()",
            f"problem.{missing[0]}",
        )
    # In the spec's order, so that equal problems are asked for in equal words.
    order = (*interface.dims, *interface.types)
    return {**{name: complete[name] for name in order}, **complete}


def _read(interface: Interface, name: str, facts: arrays.ArrayFacts, known: Problem, found: Problem) -> None:
    binding = interface.buffer_types[name]
    if binding in interface.types and facts.dtype and binding not in known:
        found[binding] = facts.dtype
    axes = interface.shapes.get(name)
    if axes is None:
        return
    if len(facts.shape) < len(axes):
        raise InvalidArgumentError(
            f"has the shape {list(facts.shape)}, expected {_text(axes)}", f"argument {name}"
        )
    for axis, size in zip(axes, _merged(facts.shape, len(axes))):
        if axis not in interface.dims:
            continue
        if known.get(axis, size) != size:
            raise InvalidArgumentError(
                f"has the shape {list(facts.shape)}, expected {_text(axes)} with {axis} = {known[axis]}",
                f"argument {name}",
            )
        found[axis] = size


def _merged(shape: tuple[int, ...], axes: int) -> tuple[int, ...]:
    """The shape with its first axes multiplied so that `axes` remain."""
    merges = len(shape) - axes + 1
    return shape if merges <= 1 or axes == 0 else (math.prod(shape[:merges]), *shape[merges:])


def output_shape(
    interface: Interface, name: str, elements: int, problem: Problem, given: Mapping[str, Any]
) -> tuple[int, ...]:
    """The shape for an output to allocate: that of a given array with the same shape in the spec (its further
    axes too), else the spec's where it is made of dims and numbers, else flat."""
    axes = interface.shapes.get(name)
    if axes is None:
        return (elements,)
    for other, array in given.items():
        if interface.shapes.get(other) == axes and arrays.is_array(array):
            return arrays.facts_of(other, array).shape
    sizes = tuple(int(axis) if axis.isdigit() else problem.get(axis) for axis in axes)
    shape = tuple(size for size in sizes if isinstance(size, int))
    return shape if len(shape) == len(axes) else (elements,)


def _text(axes: tuple[str, ...]) -> str:
    return f"[{', '.join(axes)}]"
