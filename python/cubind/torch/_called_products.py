"""Modules whose own code calls torch's products of groups or of FP8: except in compiled graphs, these are
cubind's."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from ._grouped_mm import grouped_mm
from ._scaled_grouped_mm import by_kernel as grouped_by_kernel
from ._scaled_grouped_mm import scaled_grouped_mm
from ._scaled_mm import BY_BLOCK, BY_ROW, BY_TENSOR, by_kernel, scaled_mm

_Arguments = tuple[Any, ...]


def _grouped_mm(input: Any, mat2: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    return grouped_mm(input, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


# Torch's public function calls `theirs` with lists of scales and of recipe numbers, then with `names`.
def _listed(ours: Callable[..., Any], theirs: Callable[..., Any], *names: str) -> Callable[..., Any]:
    def call(input: Any, mat2: Any, *given: Any, **named: Any) -> Any:
        if named:  # as torch's function does not call it
            return theirs(input, mat2, *given, **named)
        scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b = given[:6]
        if swizzle_a or swizzle_b or any(len(one) != 1 for one in (scale_a, recipe_a, scale_b, recipe_b)):
            return theirs(input, mat2, *given)
        recipes = (functional.ScalingType(one) for (one,) in (recipe_a, recipe_b))
        of_a, of_b = zip((scale_a[0], scale_b[0]), recipes)
        return ours(input, mat2, *of_a, *of_b, **dict(zip(names, given[6:])))

    return call


# The shapes of the scales tell the recipe.
def _scaled_mm(
    input: Any,
    mat2: Any,
    scale_a: Any,
    scale_b: Any,
    bias: Any = None,
    scale_result: Any = None,
    out_dtype: Any = None,
    use_fast_accum: bool = False,
) -> Any:
    (rows, depth), columns = input.shape, mat2.shape[1]
    blocks = (depth + 127) // 128, (columns + 127) // 128
    kinds = {((rows, blocks[0]), blocks): BY_BLOCK, ((rows, 1), (1, columns)): BY_ROW}
    is_one = scale_a.numel() == scale_b.numel() == 1
    kind = BY_TENSOR if is_one else kinds.get((tuple(scale_a.shape), tuple(scale_b.shape)))
    is_plain = bias is None and scale_result is None and out_dtype == torch.bfloat16
    if kind is not None and is_plain:
        c = by_kernel(kind, input, mat2, scale_a, scale_b, use_fast_accum)
        if c is not NotImplemented:
            return c
    return torch._scaled_mm(input, mat2, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum)


# The scales are by row.
def _scaled_grouped_mm(
    input: Any,
    mat2: Any,
    scale_a: Any,
    scale_b: Any,
    offs: Any = None,
    bias: Any = None,
    scale_result: Any = None,
    out_dtype: Any = None,
    use_fast_accum: bool = False,
) -> Any:
    if bias is None and scale_result is None and out_dtype == torch.bfloat16:
        c = grouped_by_kernel(input, mat2, scale_a, scale_b, offs, use_fast_accum)
        if c is not NotImplemented:
            return c
    more = offs, bias, scale_result, out_dtype, use_fast_accum
    return torch._scaled_grouped_mm(input, mat2, scale_a, scale_b, *more)


_OF_LISTS = "bias", "output_dtype", "contraction_dim", "use_fast_accum"
_OURS: dict[Any, Callable[..., Any]] = {
    torch._grouped_mm: _grouped_mm,
    torch._scaled_mm: _scaled_mm,
    torch._scaled_mm_v2: _listed(scaled_mm, torch._scaled_mm_v2, *_OF_LISTS),
    torch._scaled_grouped_mm: _scaled_grouped_mm,
    torch._scaled_grouped_mm_v2: _listed(scaled_grouped_mm, torch._scaled_grouped_mm_v2, "offs", *_OF_LISTS),
}
_NAMES = {prefix + name for name in ("grouped_mm", "scaled_mm", "scaled_grouped_mm") for prefix in ("", "_")}


class _Ours(TorchFunctionMode):
    def __torch_function__(
        self, func: Any, types: Any, args: _Arguments = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return _OURS.get(func, func)(*args, **(kwargs or {}))


def _is_torchs(found: Any) -> bool:
    return found is torch or found is functional or getattr(found, "__module__", "") == functional.__name__


# Whether its code, or that of functions of its file which it calls, names one of torch's functions.
def _calls(function: types.FunctionType, seen: set[types.FunctionType]) -> bool:
    seen.add(function)
    names = function.__code__.co_names
    known = [function.__globals__[name] for name in names if name in function.__globals__]
    if _NAMES.intersection(names) and any(map(_is_torchs, known)):
        return True
    return any(
        isinstance(one, types.FunctionType)
        and one not in seen
        and one.__globals__ is function.__globals__
        and _calls(one, seen)
        for one in known
    )


@functools.cache
def products_forward(cls: type) -> Callable[..., Any] | None:
    """The forward() of a class whose own calls torch's products, with cubind's. None: it calls none."""
    theirs: Any = cls.forward  # type: ignore[attr-defined]
    inner = inspect.unwrap(theirs)
    if not isinstance(inner, types.FunctionType) or not _calls(inner, set()):
        return None

    @functools.wraps(theirs)
    def forward(self: Any, *inputs: Any, **named: Any) -> Any:
        with _Ours():
            return theirs(self, *inputs, **named)

    return forward
