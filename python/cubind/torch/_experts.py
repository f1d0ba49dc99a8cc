"""Experts of `transformers`: a layer looks up by name at each call how it computes them."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ._copies import with_names
from ._grouped_mm import by_kernel

_INTERFACE = "experts_interface"  # what the forward() of an experts class looks the name up in
_GROUPED = "grouped_mm"
_PRODUCT, _LINEAR = "_grouped_mm", "_grouped_linear"  # what its function of that name calls


@functools.cache
def experts_forward(cls: type) -> Callable[..., Any] | None:
    """The forward() of an experts class with cubind's products of groups, for modules of whose config
    experts_implementation is "grouped_mm". None: it is no such class."""
    theirs: Any = cls.forward  # type: ignore[attr-defined]
    code = getattr(theirs, "__code__", None)
    if code is None or _INTERFACE not in code.co_freevars:
        return None
    grouped: Any = theirs.__closure__[code.co_freevars.index(_INTERFACE)].cell_contents.get(_GROUPED)
    linear, product = (getattr(grouped, "__globals__", {}).get(name) for name in (_LINEAR, _PRODUCT))
    if not (isinstance(linear, types.FunctionType) and isinstance(product, types.FunctionType)):
        return None

    def own_product(input: Tensor, weight: Tensor, offs: Tensor) -> Tensor:
        found = by_kernel(input.to(weight.dtype), weight, offs)
        return product(input, weight, offs) if found is NotImplemented else found

    ours = with_names(grouped, {_LINEAR: with_names(linear, {_PRODUCT: own_product})})

    @functools.wraps(theirs)
    def forward(self: Any, *inputs: Any, **named: Any) -> Any:
        return (theirs if other_experts(self) else ours)(self, *inputs, **named)

    return forward


def other_experts(module: torch.nn.Module) -> str:
    """Why experts do not call cubind's products now; "" if they do."""
    name = getattr(getattr(module, "config", None), "_experts_implementation", None)
    return "" if name == _GROUPED else f"its experts are {name}"
