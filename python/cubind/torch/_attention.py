"""Attention: cubind::attention and cubind::attention_backward."""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from torch.compiler import is_compiling
from torch.nn import functional

from .._switch import IS_OFF
from ._access import PLAIN
from ._attention_formula import (
    Three,
    backward_formula,
    empty_as,
    formula,
    lse_like,
    ordered_as,
    row_stride,
)
from ._dispatch import (
    HALF,
    Backward,
    Dispatched,
    Gradients,
    applies,
    is_direct,
    stream_of,
)
from ._dtensor import are_distributed, run_locally
from ._operator import Operator, is_there

_DIMS = ("B", "HQ", "HKV", "SQ", "SK", "D")
_HEAD_SIZES = (64, 80, 96, 128)
_ROWS = ("q_row", "k_row", "v_row")
FORWARD_ATTENTION = _forward = Operator(
    "flash_attention_forward", _DIMS, ("q", "k", "v", "o", "lse", "scale", *_ROWS), ("CAUSAL",)
)
_backward = Operator(
    "flash_attention_backward",
    _DIMS,
    ("q", "k", "v", "o", "d_o", "lse", "dq", "dk", "dv", "scale", *_ROWS),
    ("CAUSAL",),
)
_Q, _KV, _LSE = "B HQ SQ D", "B HKV SK D", "B HQ SQ f32"
_INPUTS = f"{_Q} rows", f"{_KV} rows", f"{_KV} rows"
_AS_Q, _AS_K, _AS_V = f"{_Q} as:0", f"{_KV} as:1", f"{_KV} as:2"
_calls = {
    causal: _forward.call(
        _INPUTS, (_AS_Q, _LSE), ("HQ", "HKV", "D"), numbers=1, flags=(int(causal),), constants=(causal,)
    )
    for causal in (False, True)
}
_backward_calls = {
    causal: _backward.call(
        (*_INPUTS, _AS_Q, _AS_Q, _LSE),
        (_AS_Q, _AS_K, _AS_V),
        ("HQ", "HKV", "D"),
        numbers=1,
        flags=(int(causal),),
    )
    for causal in (False, True)
}


def _has_kernel(q: torch.Tensor, *others: torch.Tensor) -> bool:
    same = all(t.dtype == q.dtype and t.device == q.device and t.numel() > 0 for t in others)
    return q.dtype in HALF and same and q.numel() > 0 and q.shape[-1] in _HEAD_SIZES


def _problem(q: torch.Tensor, k: torch.Tensor, causal: bool) -> tuple[Any, tuple[int, ...]]:
    B, HQ, SQ, D = q.shape
    HKV, SK = k.shape[1:3]
    return (q.dtype, q.get_device(), (int(causal),), (HQ, HKV, D)), (B, HQ, HKV, SQ, SK, D)


# As the kernels read it: where it is no such view, or vectors cannot be read from its address, a copy.
def _readable(t: torch.Tensor) -> torch.Tensor:
    row = row_stride(t)
    return t.clone(memory_format=torch.contiguous_format) if row is None or (row and t.data_ptr() % 16) else t


def _forward_cuda(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    outputs = _calls[causal].launch(q, k, v, scale)
    if outputs is not None and outputs is not NotImplemented:
        return outputs
    if outputs is None and _has_kernel(q, k, v):
        given = _readable(q), _readable(k), _readable(v)
        o, lse = empty_as(given[0]), lse_like(q)
        key, dims = _problem(q, k, causal)
        arguments = (*given, o, lse, scale, *map(row_stride, given))
        if _forward.launch(key, dims, stream_of(q.get_device()), arguments):
            return ordered_as(o, q), lse
    return formula(q, k, v, causal, scale)


def _backward_cuda(
    d_o: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    causal: bool,
    scale: float,
) -> Three:
    gradients = _backward_calls[causal].launch(q, k, v, o, d_o, lse, scale)
    if gradients is not None and gradients is not NotImplemented:
        return gradients
    if gradients is None and _has_kernel(q, k, v, o, d_o):
        given = _readable(q), _readable(k), _readable(v)
        saved = ordered_as(o, given[0]), ordered_as(d_o, given[0]), lse.contiguous()
        made = empty_as(given[0]), empty_as(given[1]), empty_as(given[2])
        key, dims = _problem(q, k, causal)
        arguments = (*given, *saved, *made, scale, *map(row_stride, given))
        if _backward.launch(key, dims, stream_of(q.get_device()), arguments):
            return ordered_as(made[0], q), ordered_as(made[1], k), ordered_as(made[2], v)
    return backward_formula(d_o, q, k, v, o, lse, causal, scale)


def _fake(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    return empty_as(q), lse_like(q)


def _backward_fake(
    d_o: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    causal: bool,
    scale: float,
) -> Three:
    return empty_as(q), empty_as(k), empty_as(v)


def _gradients(ctx: Any, d_o: torch.Tensor) -> Gradients:
    given = _backward_operator(d_o, *ctx.saved_tensors, *ctx.others)
    return tuple(g if needed else None for g, needed in zip(given, ctx.needs_input_grad))


_operator = Dispatched(
    "attention(Tensor q, Tensor k, Tensor v, bool causal, float scale) -> (Tensor, Tensor)",
    _forward_cuda,
    formula,
    _fake,
    tensors=3,
)
_backward_operator = Dispatched(
    "attention_backward(Tensor d_o, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, bool causal, float scale)"
    " -> (Tensor, Tensor, Tensor)",
    _backward_cuda,
    backward_formula,
    _backward_fake,
    tensors=6,
)
_operator.differentiate(
    (0, 1, 2, 3, 4),
    _gradients,
    *(
        (_calls[causal], Backward(by, (0, 1, 2, 3, -1, 4), needed=True))
        for causal, by in _backward_calls.items()
    ),
)


# What the kernels compute, and torch means the same by it. With a causal mask torch aligns the first query
# with the first key, the kernels the last with the last.
def _is_ours(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool, enable_gqa: bool) -> bool:
    return (
        q.dim() == k.dim() == v.dim() == 4
        and q.dtype in HALF
        and q.numel() * k.numel() > 0
        and q.shape[3] in _HEAD_SIZES
        and k.shape == v.shape
        and (q.shape[0], q.shape[3]) == (k.shape[0], k.shape[3])
        and (q.shape[1] == k.shape[1] or (enable_gqa and q.shape[1] % k.shape[1] == 0))
        and (not is_causal or q.shape[2] == k.shape[2])
    )


def _is_there(q: torch.Tensor, k: torch.Tensor, is_causal: bool, needs_gradients: bool) -> bool:
    key, dims = _problem(q, k, is_causal)
    if not is_there(needs_gradients, (_forward, key, dims), (_backward, key, dims)):
        return False
    return not (needs_gradients and torch.is_grad_enabled()) or _backward.available(key, dims)


# As many queries as keys, and as many heads of them or a multiple.
def _is_square(q: torch.Size, k: torch.Size, enable_gqa: bool) -> bool:
    return q == k or (
        enable_gqa and len(k) == 4 and (q[0], *q[2:]) == (k[0], *k[2:]) and k[1] > 0 and q[1] % k[1] == 0
    )


# As many queries as keys, by kernels that are known; None where they are not.
def _plain(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool, scale: float | None, enable_gqa: bool
) -> torch.Tensor | None:
    if type(q) not in PLAIN or q.is_nested:
        return None
    shape = q.shape
    if len(shape) != 4 or not _is_square(shape, k.shape, enable_gqa):
        return None
    factor = 1 / math.sqrt(shape[3]) if scale is None else scale
    return _calls[is_causal].direct(None, q, k, v, factor)


def scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """torch.nn.functional.scaled_dot_product_attention, by cubind's kernels on a GPU.

    query: [B, HQ, SQ, D]; key, value: [B, HKV, SK, D]; bf16 or f16, D of 64, 80, 96 or 128.
    scale: None is 1 / sqrt(D). enable_gqa: HQ may be a multiple of HKV.

    Nothing is copied for tensors in C order and for views of [B, S, H, D], as projections give them, also one
    projection for all three. The result and the gradients are such views where the query, key or value is.

    Torch's own function is used as rms_norm() says, for other sizes and types, with attn_mask or dropout_p,
    with is_causal if there are not as many keys as queries, and in compiled graphs.

    DTensors give one as rms_norm() says; batches and heads may be sharded.
    """
    if attn_mask is None and dropout_p == 0:
        o = attend(query, key, value, is_causal, scale, enable_gqa)
        if o is not NotImplemented:
            return o
    return functional.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )


def attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Any:
    """scaled_dot_product_attention() without a mask and dropout. NotImplemented: torch's own function takes
    its place."""
    if IS_OFF:
        return NotImplemented
    o = None if is_compiling() else _plain(query, key, value, is_causal, scale, enable_gqa)
    if o is not None:
        return o
    needs = query.requires_grad or key.requires_grad or value.requires_grad
    if (
        is_compiling()
        or not applies(query, key, value)
        or not _is_ours(query, key, value, is_causal, enable_gqa)
        or not _is_there(query, key, is_causal, needs)
    ):
        if not are_distributed(query, key, value):
            return NotImplemented
        call = functools.partial(
            scaled_dot_product_attention, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa
        )
        heads = {"query": query, "key": key, "value": value}
        return run_locally("scaled_dot_product_attention", call, heads, 2, features=value.shape[-1])
    factor = 1 / math.sqrt(query.shape[3]) if scale is None else scale
    if is_direct(query, key, value):
        o = _calls[is_causal].direct(None, query, key, value, factor)
        return (
            o
            if isinstance(o, torch.Tensor)
            else _operator.direct(needs, query, key, value, is_causal, factor)[0]
        )
    return _operator(query, key, value, is_causal, factor)[0]
