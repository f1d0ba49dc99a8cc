"""Attention: cubind::attention and cubind::attention_backward."""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from torch.compiler import is_compiling
from torch.nn import functional

from .. import _torch_private as private
from .._switch import IS_OFF
from ._access import PLAIN
from ._dispatch import (
    HALF,
    Dispatched,
    Gradients,
    applies,
    contiguous_like,
    is_direct,
    stream_of,
    wide,
)
from ._dtensor import are_distributed, run_locally
from ._operator import Operator, is_there

_DIMS = ("B", "HQ", "HKV", "SQ", "SK", "D")
_HEAD_SIZES = (64, 128)
_forward = Operator("flash_attention_forward", _DIMS, ("q", "k", "v", "o", "lse", "scale"), ("CAUSAL",))
_backward = Operator(
    "flash_attention_backward",
    _DIMS,
    ("q", "k", "v", "o", "d_o", "lse", "dq", "dk", "dv", "scale"),
    ("CAUSAL",),
)
_Q, _KV, _LSE = "B HQ SQ D", "B HKV SK D", "B HQ SQ f32"
_calls = {
    causal: _forward.call(
        (_Q, _KV, _KV), (_Q, _LSE), ("HQ", "HKV", "D"), numbers=1, flags=(int(causal),), constants=(causal,)
    )
    for causal in (False, True)
}
_backward_calls = {
    causal: _backward.call(
        (_Q, _KV, _KV, _Q, _Q, _LSE), (_Q, _KV, _KV), ("HQ", "HKV", "D"), numbers=1, flags=(int(causal),)
    )
    for causal in (False, True)
}

Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


# [B, HQ, SQ]: the logsumexp of each row, in float32 or the wider type of q.
def _lse_like(q: torch.Tensor) -> torch.Tensor:
    return q.new_empty(q.shape[:-1], dtype=torch.promote_types(q.dtype, torch.float32))


# k or v with a head for each head of the queries.
def _spread(heads: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    return wide(heads).repeat_interleave(q.shape[1] // heads.shape[1], dim=1)


def _scores(q: torch.Tensor, k: torch.Tensor, causal: bool, scale: float) -> torch.Tensor:
    scores = wide(q) @ _spread(k, q).transpose(-2, -1) * scale
    if causal:
        seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device)
        scores = scores.masked_fill(~seen.tril(k.shape[2] - q.shape[2]), -math.inf)
    return scores


def _formula(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    known = private.flash_attention(q, k, v, causal, scale)
    if known is not None:
        return known[0].contiguous(), known[1].contiguous()
    scores = _scores(q, k, causal, scale)
    lse = scores.logsumexp(-1)
    o = _weights(scores, lse) @ _spread(v, q)
    return o.to(q.dtype).contiguous(), lse.contiguous()


# A query that sees no key has weights of 0.
def _weights(scores: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
    return (scores - lse.unsqueeze(-1)).exp().masked_fill((lse == -math.inf).unsqueeze(-1), 0.0)


def _backward_formula(
    d_o: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    causal: bool,
    scale: float,
) -> Three:
    known = private.flash_attention_backward(d_o, q, k, v, causal, scale)
    if known is not None:
        return known[0].contiguous(), known[1].contiguous(), known[2].contiguous()
    weights = _weights(_scores(q, k, causal, scale), lse)
    grad = wide(d_o)
    slopes = grad @ _spread(v, q).transpose(-2, -1)
    slopes = weights * (slopes - (grad * wide(o)).sum(-1, keepdim=True)) * scale
    dq = slopes @ _spread(k, q)
    shape = (k.shape[0], k.shape[1], -1, k.shape[2], k.shape[3])
    dk = (slopes.transpose(-2, -1) @ wide(q)).view(shape).sum(2)
    dv = (weights.transpose(-2, -1) @ grad).view(shape).sum(2)
    return tuple(x.to(y.dtype).contiguous() for x, y in zip((dq, dk, dv), (q, k, v)))  # type: ignore[return-value]


def _has_kernel(q: torch.Tensor, *others: torch.Tensor) -> bool:
    same = all(t.dtype == q.dtype and t.device == q.device and t.numel() > 0 for t in others)
    return q.dtype in HALF and same and q.numel() > 0 and q.shape[-1] in _HEAD_SIZES


def _problem(q: torch.Tensor, k: torch.Tensor, causal: bool) -> tuple[Any, tuple[int, ...]]:
    B, HQ, SQ, D = q.shape
    HKV, SK = k.shape[1:3]
    return (q.dtype, q.get_device(), (int(causal),), (HQ, HKV, D)), (B, HQ, HKV, SQ, SK, D)


def _forward_cuda(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    outputs = _calls[causal].launch(q, k, v, scale)
    if outputs is not None and outputs is not NotImplemented:
        return outputs
    if outputs is None and _has_kernel(q, k, v):
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        o, lse = torch.empty_like(q), _lse_like(q)
        key, dims = _problem(q, k, causal)
        if _forward.launch(key, dims, stream_of(q.get_device()), (q, k, v, o, lse, scale)):
            return o, lse
    return _formula(q, k, v, causal, scale)


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
        q, k, v, o, d_o = (t.contiguous() for t in (q, k, v, o, d_o))
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        key, dims = _problem(q, k, causal)
        arguments = (q, k, v, o, d_o, lse.contiguous(), dq, dk, dv, scale)
        if _backward.launch(key, dims, stream_of(q.get_device()), arguments):
            return dq, dk, dv
    return _backward_formula(d_o, q, k, v, o, lse, causal, scale)


def _fake(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    return contiguous_like(q), _lse_like(q)


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
    return contiguous_like(q), contiguous_like(k), contiguous_like(v)


def _gradients(ctx: Any, d_o: torch.Tensor) -> Gradients:
    given = _backward_operator(d_o, *ctx.saved_tensors, *ctx.others)
    return tuple(g if needed else None for g, needed in zip(given, ctx.needs_input_grad))


_operator = Dispatched(
    "attention(Tensor q, Tensor k, Tensor v, bool causal, float scale) -> (Tensor, Tensor)",
    _forward_cuda,
    _formula,
    _fake,
    tensors=3,
)
_backward_operator = Dispatched(
    "attention_backward(Tensor d_o, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, bool causal, float scale)"
    " -> (Tensor, Tensor, Tensor)",
    _backward_cuda,
    _backward_formula,
    _backward_fake,
    tensors=6,
)
_operator.differentiate((0, 1, 2, 3, 4), _gradients, *_calls.values())


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


# As many queries and heads of them as of keys, by kernels that are known; None where they are not.
def _plain(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool, scale: float | None
) -> torch.Tensor | None:
    if type(q) not in PLAIN or q.is_nested or q.dim() != 4 or q.shape != k.shape:
        return None
    factor = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        key, _ = _problem(q, k, is_causal)
        if not _backward.knows(key):
            return NotImplemented if _calls[is_causal].is_missing(q, k, v, factor) else None
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

    query: [B, HQ, SQ, D]; key, value: [B, HKV, SK, D]; bf16 or f16, D of 64 or 128. scale: None is 1 /
    sqrt(D). enable_gqa: HQ may be a multiple of HKV.

    Torch's own function is used as rms_norm() says, for other sizes and types, with attn_mask or dropout_p,
    and with is_causal if there are not as many keys as queries.

    DTensors give one as rms_norm() says; batches and heads may be sharded.
    """
    plain = attn_mask is None and dropout_p == 0
    o: Any = None if plain and not IS_OFF else NotImplemented
    if o is None and not is_compiling():
        o = _plain(query, key, value, is_causal, scale)
    if o is None:
        o = _longer(query, key, value, is_causal, scale, enable_gqa)
    if o is not NotImplemented:
        return o
    return functional.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )


# NotImplemented: torch's own function takes its place.
def _longer(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Any:
    needs = query.requires_grad or key.requires_grad or value.requires_grad
    if (
        not applies(query, key, value)
        or not _is_ours(query, key, value, is_causal, enable_gqa)
        or not (is_compiling() or _is_there(query, key, is_causal, needs))
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
