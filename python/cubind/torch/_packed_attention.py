"""Attention of packed sequences: cubind::packed_attention and cubind::packed_attention_backward."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .._switch import IS_OFF
from .._torch_access import PLAIN
from ..errors import InvalidArgumentError
from ._attention import OPTIONS
from ._attention_formula import Packed, packed_backward_formula, packed_formula
from ._call import Call
from ._dispatch import Dispatched
from ._operator import Operator
from ._tensors import power_of_two

_DIMS, _KNOWN = ("N", "HQ", "HKV", "SQ", "SK", "D"), ("HQ", "HKV", "D")
_FLAGS = ("CAUSAL", "LEFT", "RIGHT", "SOFT_CAP", "DROPOUT", "GAPS", "CROSS", "SPREAD")
_forward = Operator("flash_attention_packed_forward", _DIMS, _FLAGS, _KNOWN)
_backward = Operator("flash_attention_packed_backward", _DIMS, _FLAGS, _KNOWN)
_Q, _KV, _LSE, _BOUNDS = "1 HQ SQ D", "1 HKV SK D", "HQ SQ f32", "N+1 i32"
_INPUTS = {"q": f"{_Q} rows", "k": f"{_KV} rows", "v": f"{_KV} rows"}
_SEQUENCES = dict.fromkeys(("q_bounds", "k_bounds", "q_lengths", "k_lengths"), _BOUNDS)


def _flags(causal: bool, left: int, right: int, soft_cap: int, *others: bool) -> tuple[int, ...]:
    return int(causal), left, right, soft_cap, 0, *map(int, others)


def _forward_call(*constants: int) -> Call:
    inputs, outputs = {**_INPUTS, **_SEQUENCES}, {"o": f"{_Q} as:0", "lse": _LSE}
    return _forward.call(inputs, outputs, flags=_flags(*constants), constants=constants, **OPTIONS)


def _backward_call(*constants: int) -> Call:
    inputs = {"d_o": f"{_Q} as:1", **_INPUTS, "o": f"{_Q} as:1", "lse": _LSE, **_SEQUENCES}
    outputs = {"dq": f"{_Q} as:1", "dk": f"{_KV} as:2", "dv": f"{_KV} as:3"}
    return _backward.call(inputs, outputs, flags=_flags(*constants), constants=constants, **OPTIONS)


_OTHERS = (
    "Tensor q_bounds, Tensor k_bounds, Tensor q_lengths, Tensor k_lengths, bool causal, int left, int right, "
    "int soft_cap, bool gaps, bool cross, bool spread, float scale"
)
_PLAIN = (False, 0, 0, 0, False, False, False)
_backward_operator = Dispatched(
    "packed_attention_backward(Tensor d_o, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, "
    f"{_OTHERS}) -> (Tensor, Tensor, Tensor)",
    [_backward_call(*_PLAIN)],
    packed_backward_formula,
    make=_backward_call,
)
_operator = Dispatched(
    f"packed_attention(Tensor q, Tensor k, Tensor v, {_OTHERS}) -> (Tensor, Tensor)",
    [_forward_call(*_PLAIN)],
    packed_formula,
    make=_forward_call,
)
_operator.differentiate((0, 1, 2, 7, 8, 3, 4, 5, 6), _backward_operator, needs_kernels=True)


def attend_packed(q: Tensor, k: Tensor, v: Tensor, given: Packed) -> Any:
    """Attention of the sequences of [1, heads, rows, D]. NotImplemented: there is no kernel."""
    if IS_OFF or type(q) not in PLAIN:
        return NotImplemented
    return _operator.call(*given[4:-1])(None, q, k, v, *given[:4], given.scale)


def rows_of(heads: Tensor) -> Tensor:
    """[B, heads, S, D] as [1, heads, B * S, D]: not copied where it is a view of [B, S, heads, D]."""
    if heads.shape[0] == 1:
        return heads
    B, H, S, D = heads.shape
    return heads.transpose(1, 2).reshape(1, B * S, H, D).transpose(1, 2)


# Padded with empty sequences at the end.
def _rounded(bounds: Tensor, rows: int) -> Tensor:
    count = len(bounds) - 1
    return functional.pad(bounds.to(torch.int32), (0, power_of_two(count) - count), value=rows)


def varlen_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_q: int,
    max_k: int,
    is_causal: bool = False,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    soft_cap: int = 0,
) -> Tensor:
    """Attention within each of several sequences that are packed one after the other, as
    torch.nn.attention.varlen and flash-attention compute it.

    query: [rows, HQ, D]; key, value: [rows, HKV, D]; HQ is a multiple of HKV; bf16 or f16, D of 64, 80, 96,
        128 or 256. Views whose rows are further apart, as one projection for all three gives, are not copied.
    cu_seqlens_q, cu_seqlens_k: int32, one more than there are sequences: sequence n has the rows from
        cu_seqlens[n] up to, not including, cu_seqlens[n + 1]. For self-attention pass the same tensor twice.
        Only the GPU reads them: nothing checks that they ascend.
    max_q, max_k: the length of the longest sequence. They only select between variants that were tuned for
        equal lengths and for lognormal ones.
    is_causal: the last query sees the last key, in sequences with more keys than queries too.
    window_size: how many keys a query sees to the left (before) and to the right (after) of its own; -1: all.
    soft_cap: c: scores become c * tanh(score / c). scale: None is 1 / sqrt(D).

    A query without a key gets 0. Without a kernel, torch's function is called with a mask of all rows. Raises
    InvalidArgumentError if there are not as many sequences of keys as of queries.
    """
    cross = cu_seqlens_q is not cu_seqlens_k
    if not 0 < len(cu_seqlens_q) == len(cu_seqlens_k):
        cause = f"{len(cu_seqlens_k)} numbers, and {len(cu_seqlens_q)} for the queries: as many, one or more"
        raise InvalidArgumentError(cause, "cu_seqlens_k")
    if not cross and query.shape[0] != key.shape[0]:
        cause = f"{key.shape[0]} rows, and the queries, whose sequences it has, {query.shape[0]}: as many"
        raise InvalidArgumentError(cause, "key")
    left, right = (size + 1 for size in window_size)
    count = len(cu_seqlens_q) - 1
    q_bounds = _rounded(cu_seqlens_q, query.shape[0])
    k_bounds = _rounded(cu_seqlens_k, key.shape[0]) if cross else q_bounds
    spread = max_q * count != query.shape[0] or max_k * count != key.shape[0]
    mask = (is_causal or right == 1, left, 0 if is_causal or right == 1 else right, soft_cap)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    given = Packed(q_bounds, k_bounds, q_bounds, k_bounds, *mask, False, cross, spread, factor)
    q, k, v = (rows.transpose(0, 1)[None] for rows in (query, key, value))
    o = _operator(q, k, v, *given)[0] if torch.compiler.is_compiling() else attend_packed(q, k, v, given)
    if o is NotImplemented:
        o = _by_torch(q, k, v, given)
    return o[0].transpose(0, 1)


def _by_torch(q: Tensor, k: Tensor, v: Tensor, given: Packed) -> Tensor:
    if given.soft_cap:
        return packed_formula(q, k, v, *given)[0]
    k, v = (heads.repeat_interleave(q.shape[1] // k.shape[1], 1) for heads in (k, v))
    return functional.scaled_dot_product_attention(q, k, v, given.seen(q, k), scale=given.scale)
