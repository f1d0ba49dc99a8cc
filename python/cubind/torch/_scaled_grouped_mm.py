"""Products of FP8 of groups of rows: cubind::scaled_grouped_mm, and torch's scaled_grouped_mm by it. They
have no gradients, as torch's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ._dispatch import Dispatched
from ._operator import Operator
from ._scaled_mm import BY_BLOCK, BY_ROW, EXACT, is_plain, only

_kernel = Operator("scaled_grouped_mm", ("M", "N", "K", "E"), ("SCALES",))
# As the scales lie in memory.
_SCALES = {BY_ROW: ("M", "E N"), BY_BLOCK: ("K/128 M", "E N/128 K/128"), BY_ROW + EXACT: ("M", "E N")}
_calls = {
    kind: _kernel.call(
        {
            "a": "M K e4m3",
            "b": "E N K e4m3",
            "scale_a": f"{of_a} f32",
            "scale_b": f"{of_b} f32",
            "offsets": "E i32",
        },
        {"c": "M N bf16"},
        flags=(kind,),
        constants=(kind,),
    )
    for kind, (of_a, of_b) in _SCALES.items()
}


def _formula(a: Tensor, b: Tensor, scale_a: Tensor, scale_b: Tensor, offsets: Tensor, kind: int) -> Tensor:
    if kind == BY_BLOCK:
        (_, N, K), by_row = b.shape, scale_b.repeat_interleave(128, 1)
        of_a = scale_a.t().repeat_interleave(128, 1)[:, :K]
        of_b = by_row[:, :N].repeat_interleave(128, 2)[:, :, :K]
    else:
        of_a, of_b = scale_a[:, None], scale_b[:, :, None]
    c = functional.grouped_mm(a.float() * of_a, (b.float() * of_b).mT, offs=offsets)
    return c.to(torch.bfloat16)


# b: [E, N, K]; kind: 1 scales by row, 2 by block, 4 by row without use_fast_accum.
_operator = Dispatched(
    "scaled_grouped_mm(Tensor a, Tensor b, Tensor scale_a, Tensor scale_b, Tensor offsets, int kind) -> Tensor",
    _calls.values(),
    _formula,
)


def scaled_grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Any,
    scale_recipe_a: Any,
    scale_b: Any,
    scale_recipe_b: Any,
    swizzle_a: Any = None,
    swizzle_b: Any = None,
    bias: Tensor | None = None,
    offs: Tensor | None = None,
    output_dtype: torch.dtype | None = torch.bfloat16,
    contraction_dim: Sequence[int] = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """torch.nn.functional.scaled_grouped_mm, by cubind's kernel on a GPU: FP8, with scales by row.

    mat_a: [M, K], mat_b: [E, K, N], a transposed view of [E, N, K]; float8_e4m3fn. offs: as grouped_mm().
    scale_a, scale_b: float32, [M] and [E, N]. scale_recipe_a, scale_recipe_b: RowWise.
    output_dtype: torch.bfloat16. use_fast_accum: as scaled_mm().

    Torch's own function is used as rms_norm() says, and for other types and recipes, swizzle_a, swizzle_b,
    bias and contraction_dim.
    """
    recipes = [getattr(only(one), "name", "") for one in (scale_recipe_a, scale_recipe_b)]
    plain = is_plain(swizzle_a, swizzle_b, bias, output_dtype, contraction_dim)
    if recipes == ["RowWise", "RowWise"] and plain:
        c = by_kernel(mat_a, mat_b, only(scale_a), only(scale_b), offs, use_fast_accum)
        if c is not NotImplemented:
            return c
    scales = scale_a, scale_recipe_a, scale_b, scale_recipe_b
    others = swizzle_a, swizzle_b, bias, offs, output_dtype, contraction_dim
    return functional.scaled_grouped_mm(mat_a, mat_b, *scales, *others, use_fast_accum)


def by_kernel(a: Tensor, b: Tensor, scale_a: Any, scale_b: Any, offs: Tensor | None, is_fast: bool) -> Any:
    """scaled_grouped_mm() with scales by row. NotImplemented: torch's own function takes its place."""
    if offs is None or b.dim() != 3 or not isinstance(scale_a, Tensor):
        return NotImplemented
    return _calls[BY_ROW if is_fast else BY_ROW + EXACT](None, a, b.mT, scale_a, scale_b, offs)
