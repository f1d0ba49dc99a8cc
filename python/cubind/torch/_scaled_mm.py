"""Products of FP8: cubind::scaled_mm, and torch's scaled_mm by it. They have no gradients, as torch's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ._dispatch import Dispatched
from ._operator import Operator

_kernel = Operator("scaled_mm", ("M", "N", "K"), ("SCALES",))
BY_TENSOR, BY_ROW, BY_BLOCK = range(3)
_RECIPES = {
    ("TensorWise", "TensorWise"): BY_TENSOR,
    ("RowWise", "RowWise"): BY_ROW,
    ("BlockWise1x128", "BlockWise128x128"): BY_BLOCK,
}  # names of torch's ScalingType
EXACT = 3  # added to the first two: sums as by block, without use_fast_accum
# As the scales lie in memory.
_SCALES = {BY_TENSOR: ("1", "1"), BY_ROW: ("M 1", "1 N"), BY_BLOCK: ("K/128 M", "N/128 K/128")}
_calls = {
    kind: _kernel.call(
        {"a": "M K e4m3", "b": "N K e4m3", "scale_a": f"{of_a} f32", "scale_b": f"{of_b} f32"},
        {"c": "M N bf16"},
        flags=(kind,),
        constants=(kind,),
    )
    for kind in range(5)
    for of_a, of_b in [_SCALES[kind % EXACT]]
}


def _wide(values: Tensor, scale: Tensor, kind: int, is_left: bool) -> Tensor:
    if kind == BY_BLOCK:
        by_column = (scale.t() if is_left else scale).repeat_interleave(128, 1)[:, : values.shape[1]]
        scale = by_column if is_left else by_column.repeat_interleave(128, 0)[: values.shape[0]]
    return values.float() * (scale.reshape(-1, 1) if kind % EXACT == BY_ROW else scale)


def _formula(a: Tensor, b: Tensor, scale_a: Tensor, scale_b: Tensor, kind: int) -> Tensor:
    return (_wide(a, scale_a, kind, True) @ _wide(b, scale_b, kind, False).t()).to(torch.bfloat16)


# a: [M, K], b: [N, K]; kind: 0 scales by tensor, 1 by row, 2 by block; 3, 4: 0, 1 without use_fast_accum.
_operator = Dispatched(
    "scaled_mm(Tensor a, Tensor b, Tensor scale_a, Tensor scale_b, int kind) -> Tensor",
    _calls.values(),
    _formula,
)


def scaled_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Any,
    scale_recipe_a: Any,
    scale_b: Any,
    scale_recipe_b: Any,
    swizzle_a: Any = None,
    swizzle_b: Any = None,
    bias: Tensor | None = None,
    output_dtype: torch.dtype | None = torch.bfloat16,
    contraction_dim: Sequence[int] = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """torch.nn.functional.scaled_mm, by cubind's kernel on a GPU: products of FP8 with their scales.

    mat_a: [M, K], mat_b: [K, N], a transposed view of [N, K]; float8_e4m3fn.
    scale_a, scale_b: float32, of the shapes that torch's function takes.
    scale_recipe_a, scale_recipe_b: TensorWise or RowWise for both, or BlockWise1x128 and BlockWise128x128.
    output_dtype: torch.bfloat16. use_fast_accum: False adds up 128 products at a time in float32, as it is
        for scales by block.

    Torch's own function is used as rms_norm() says, and for other types and recipes, swizzle_a, swizzle_b,
    bias and contraction_dim.
    """
    scales = scale_a, scale_recipe_a, scale_b, scale_recipe_b
    others = swizzle_a, swizzle_b, bias, output_dtype, contraction_dim
    of_a, recipe_a, of_b, recipe_b = map(only, scales)
    kind = _kind(of_a, recipe_a, of_b, recipe_b)
    if kind is not None and is_plain(*others):
        c = by_kernel(kind, mat_a, mat_b, of_a, of_b, use_fast_accum)
        if c is not NotImplemented:
            return c
    return functional.scaled_mm(mat_a, mat_b, *scales, *others, use_fast_accum)


def only(given: Any) -> Any:
    """What a list of one has, as torch's functions take it."""
    return given[0] if isinstance(given, (list, tuple)) and len(given) == 1 else given


def is_plain(
    swizzle_a: Any,
    swizzle_b: Any,
    bias: Tensor | None,
    output_dtype: torch.dtype | None,
    contraction_dim: Sequence[int],
) -> bool:
    """Whether the kernels do what these arguments of torch's functions say."""
    has_more = bias is not None or swizzle_a is not None or swizzle_b is not None or contraction_dim
    return not has_more and output_dtype == torch.bfloat16


def by_kernel(kind: int, a: Tensor, b: Tensor, scale_a: Tensor, scale_b: Tensor, is_fast: bool) -> Any:
    """scaled_mm() by the kernel. NotImplemented: torch's own function takes its place."""
    exact = 0 if is_fast or kind == BY_BLOCK else EXACT
    return _calls[kind + exact](None, a, b.mT, _as_kept(scale_a, kind), _as_kept(scale_b, kind))


def _as_kept(scale: Tensor, kind: int) -> Tensor:
    return scale.reshape(1) if kind == BY_TENSOR else scale.mT if kind == BY_BLOCK else scale


# None: a recipe that the kernel does not have.
def _kind(scale_a: Any, recipe_a: Any, scale_b: Any, recipe_b: Any) -> int | None:
    if not (isinstance(scale_a, Tensor) and isinstance(scale_b, Tensor)):
        return None
    kind = _RECIPES.get((getattr(recipe_a, "name", ""), getattr(recipe_b, "name", "")))
    if kind == BY_TENSOR:
        return kind if scale_a.numel() == scale_b.numel() == 1 else None
    return kind if scale_a.dim() == scale_b.dim() == 2 else None
