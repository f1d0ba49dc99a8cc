"""Products of groups of rows, each with its own matrix: cubind::grouped_mm, and torch's grouped_mm by it."""

from __future__ import annotations

import collections
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ._call import Tensors
from ._dispatch import Dispatched, Gradients
from ._operator import Operator
from ._variants import Need

by_torch: collections.Counter[str] = collections.Counter()  # products that have no kernel
_kernel = Operator("grouped_mm", ("M", "N", "K", "E"), ("TRANSPOSE_B",))
_calls = {
    turned: _kernel.call(
        {"a": "M K", "b": "E N K" if turned else "E K N", "offsets": "E i32"},
        {"c": "M N"},
        flags=(int(turned),),
        constants=(turned,),
    )
    for turned in (False, True)
}


def _formula(a: Tensor, b: Tensor, offsets: Tensor, turned: bool) -> Tensor:
    return functional.grouped_mm(a, b.mT if turned else b, offs=offsets)


# The gradient of the rows is a product of groups again. That of the matrices, summed over the rows of each
# group, is torch's.
def _gradients(ctx: Any, dc: Tensor) -> Gradients:
    a, b, offsets = ctx.saved_tensors
    (turned,) = ctx.others
    dc = dc.contiguous()  # torch's takes no strides of 0
    da = db = None
    if ctx.needs_input_grad[0]:
        da = _operator(dc, b, offsets, not turned)
    if ctx.needs_input_grad[1]:
        by_torch["gradients of matrices"] += 1
        rows, slopes = (dc, a) if turned else (a, dc)
        db = functional.grouped_mm(rows.t(), slopes, offs=offsets)
    return da, db, None


_operator = Dispatched(
    "grouped_mm(Tensor a, Tensor b, Tensor offsets, bool transpose_b) -> Tensor", _calls.values(), _formula
)


def _ahead(need: Need, tensors: Tensors) -> list[Need]:
    M, N, K, E = need.dims
    turned = bool(need.key[2][0])
    return [_calls[not turned].at(need, M, K, N, E)] if tensors[0].requires_grad else []


_operator.differentiate((0, 1, 2), _gradients, ahead=_ahead)


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """torch.nn.functional.grouped_mm, by cubind's kernel on a GPU: the products of a mixture of experts.

    mat_a: [M, K], rows sorted by group; bf16 or f16. mat_b: [E, K, N], or a transposed view of [E, N, K].
        offs: [E], int32: where each group's rows end. Rows behind the last group are undefined.

    Torch's own function is used as rms_norm() says, and for other operands, a bias or another out_dtype.
    """
    if offs is not None and bias is None and out_dtype in (None, mat_a.dtype):
        c = by_kernel(mat_a, mat_b, offs)
        if c is not NotImplemented:
            return c
    return functional.grouped_mm(mat_a, mat_b, offs=offs, bias=bias, out_dtype=out_dtype)


def by_kernel(a: Tensor, b: Tensor, offs: Tensor) -> Any:
    """grouped_mm() by the kernel. NotImplemented: torch's own function takes its place."""
    if b.dim() != 3 or a.dtype not in (torch.bfloat16, torch.float16):
        return NotImplemented
    turned = not b.is_contiguous() and b.mT.is_contiguous()
    return _calls[turned](None, a, b.mT if turned else b, offs)
