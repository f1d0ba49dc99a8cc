"""Rotary embedding of queries and keys: cubind::rotary, whose backward pass is the same with `inverse`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ._dispatch import Dispatched, Gradients
from ._operator import Operator
from ._tensors import Two, contiguous_like, wide

_kernel = Operator("rotary", ("N", "HQ", "HKV", "C", "D"), ("INVERSE",), known=("HQ", "HKV", "D"))
_calls = {
    inverse: _kernel.call(
        {"q": "N* HQ D", "k": "N* HKV D", "cos": "C D", "sin": "C D"},
        {"q_out": "N* HQ D", "k_out": "N* HKV D"},
        flags=(int(inverse),),
        constants=(inverse,),
        returned=2,
    )
    for inverse in (False, True)
}


def _turned(x: Tensor, cos: Tensor, sin: Tensor, inverse: bool) -> Tensor:
    if x.numel() == 0:
        return contiguous_like(x)
    heads = wide(x).reshape(-1, cos.shape[0], *x.shape[-2:])
    cos, sin = wide(cos).unsqueeze(1), wide(sin).unsqueeze(1)
    low, high = (heads * sin if inverse else heads).chunk(2, -1)
    other = torch.cat((high, -low), -1) if inverse else torch.cat((-high, low), -1) * sin
    return (heads * cos + other).to(x.dtype).reshape(x.shape).contiguous()


def _formula(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, inverse: bool) -> Two:
    return _turned(q, cos, sin, inverse), _turned(k, cos, sin, inverse)


def _gradients(ctx: Any, dq: Tensor, dk: Tensor) -> Gradients:
    (inverse,) = ctx.others
    return (*_operator(dq, dk, *ctx.saved_tensors, not inverse), None, None)


# q: [..., HQ, D], k: [..., HKV, D], cos, sin: [C, D]. Token n, counted over all batches, takes row n % C.
_operator = Dispatched(
    "rotary(Tensor q, Tensor k, Tensor cos, Tensor sin, bool inverse) -> (Tensor, Tensor)",
    _calls.values(),
    _formula,
)
_operator.differentiate((2, 3), _gradients, outputs=2, ahead=lambda need, _: [_calls[True].at(need)])


def rotary(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> Two:
    """The rotary embedding of queries and keys in one kernel, as (q, k): apply_rotary_pos_emb of
    transformers' Llama, Qwen and Mistral, which is x * cos + rotate_half(x) * sin.

    q: [B, HQ, S, D], k: [B, HKV, S, D]; bf16, f16 or f32. The results are views of [B, S, H, D]; if q and k
        are too, as a projection gives them, nothing is copied. cos, sin: [B, S, D], [1, S, D] or [S, D], of
        q's type.

    Torch's own functions are used as rms_norm() says, for other shapes and types, for cos and sin that need
    gradients, and for DTensors.
    """
    if _is_ours(q, k, cos, sin):
        tables = cos.reshape(-1, cos.shape[-1]), sin.reshape(-1, sin.shape[-1])
        both = _calls[False](None, q.transpose(1, 2), k.transpose(1, 2), *tables)
        if both is not NotImplemented:
            return both[0].transpose(1, 2), both[1].transpose(1, 2)
    cos, sin = cos.unsqueeze(-3), sin.unsqueeze(-3)
    return q * cos + _half_turned(q) * sin, k * cos + _half_turned(k) * sin


def _half_turned(x: Tensor) -> Tensor:
    low, high = x.chunk(2, -1)
    return torch.cat((-high, low), -1)


def _is_ours(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> bool:
    return (
        q.dim() == k.dim() == 4
        and (q.shape[0], q.shape[2:]) == (k.shape[0], k.shape[2:])
        and q.shape[3] % 2 == 0
        and cos.shape == sin.shape
        and cos.dim() in (2, 3)
        and cos.shape[-2:] == q.shape[2:]
        and (cos.dim() == 2 or cos.shape[0] in (1, q.shape[0]))
        and not (cos.requires_grad or sin.requires_grad)
    )
