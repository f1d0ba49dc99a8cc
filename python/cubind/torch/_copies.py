"""Copies of functions that find other things under the names of their module."""

from __future__ import annotations

import types
from typing import Any, cast


def with_names(function: types.FunctionType, own: dict[str, Any]) -> types.FunctionType:
    """A copy of a function that finds these under the names of its module's own."""
    names = {**function.__globals__, **own}
    del names["__name__"]  # by which torch.compile would take the module's own functions
    ours = types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
    ours.__kwdefaults__ = function.__kwdefaults__
    return ours


def rewrapped(method: Any, own: dict[str, Any]) -> types.FunctionType:
    """with_names() of a decorated function, with its decorators."""
    wrapped = getattr(method, "__wrapped__", None)
    if wrapped is None:
        return with_names(method, own)
    inner = rewrapped(wrapped, own)
    cells = tuple(
        types.CellType(inner) if cell.cell_contents is wrapped else cell for cell in method.__closure__ or ()
    )
    ours = types.FunctionType(
        method.__code__, method.__globals__, method.__name__, method.__defaults__, cells
    )
    ours.__kwdefaults__ = cast(Any, method).__kwdefaults__
    return ours
