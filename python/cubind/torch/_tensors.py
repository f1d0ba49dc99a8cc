"""Tensors as formulas and kernels take them."""

from __future__ import annotations

import torch
from torch import Tensor

Two = tuple[Tensor, Tensor]
Three = tuple[Tensor, Tensor, Tensor]

HALF = (torch.bfloat16, torch.float16)
_LARGEST = 2**31 - 1
_ALIGNED = 16  # bytes: no kernel needs more


def wide(tensor: Tensor) -> Tensor:
    """In float32 where it is narrower: what a formula computes in."""
    return tensor.float() if tensor.dtype in HALF else tensor


def contiguous_like(tensor: Tensor) -> Tensor:
    """An empty tensor of the same shape, in C order."""
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def statistics(x: Tensor) -> Tensor:
    """An empty tensor with one value for each row, in float32 or the wider type of x."""
    return x.new_empty(x.shape[:-1], dtype=torch.promote_types(x.dtype, torch.float32))


def power_of_two(count: int) -> int:
    """The next one: sequences are bucketed by it, and another number in a bucket that is not tuned is another
    question to the daemon."""
    return 1 << (count - 1).bit_length()


# ---- Tensors [B, heads, S, D] ----


def row_stride(t: Tensor) -> int | None:
    """0 in C order; for a view of [B, S, heads, D] the elements from one token to the next. None: the kernels
    do not read it. The same as in python/extension/tensor_view.hpp."""
    if t.is_contiguous():
        return 0
    B, heads, S, D = t.shape
    batch, head, token, element = t.stride()
    row = token if S > 1 else batch
    fits = (
        element == 1
        and (heads == 1 or head == D)
        and heads * D <= row <= _LARGEST
        and row % 8 == 0
        and (B == 1 or batch == S * row)
    )
    return row if fits else None


def empty_as(t: Tensor) -> Tensor:
    """An empty tensor of the same shape: as [B, S, heads, D] if t is a view of that, else in C order."""
    if not row_stride(t):
        return contiguous_like(t)
    B, heads, S, D = t.shape
    return t.new_empty((B, S, heads, D)).transpose(1, 2)


def ordered_as(values: Tensor, t: Tensor) -> Tensor:
    """The values in the order of empty_as(t), copied if they have another one."""
    if not row_stride(t):
        return values.contiguous()
    return values.transpose(1, 2).contiguous().transpose(1, 2)


def aligned(t: Tensor) -> Tensor:
    """The tensor; a copy of a view that begins where vectors cannot be read."""
    return t.clone() if t.data_ptr() % _ALIGNED else t
