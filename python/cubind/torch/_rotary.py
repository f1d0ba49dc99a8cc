"""Rotary embedding of queries and keys: cubind::rotary, whose backward pass is the same with `inverse`."""

from __future__ import annotations

from typing import Any

import torch
from torch.compiler import is_compiling

from .._switch import IS_OFF
from ._dispatch import Dispatched, Gradients, applies, contiguous_like, is_direct, stream_of, wide
from ._operator import Operator, is_there
from ._variants import TYPES, has_kernel

_kernel = Operator(
    "rotary", ("N", "HQ", "HKV", "C", "D"), ("q", "k", "cos", "sin", "q_out", "k_out"), ("INVERSE",)
)
_calls = {
    inverse: _kernel.call(
        ("N* HQ D", "N* HKV D", "C D", "C D"),
        ("N* HQ D", "N* HKV D"),
        known=("HQ", "HKV", "D"),
        flags=(int(inverse),),
    )
    for inverse in (False, True)
}

Two = tuple[torch.Tensor, torch.Tensor]


def _turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, inverse: bool) -> torch.Tensor:
    if x.numel() == 0:
        return contiguous_like(x)
    heads = wide(x).reshape(-1, cos.shape[0], *x.shape[-2:])
    cos, sin = wide(cos).unsqueeze(1), wide(sin).unsqueeze(1)
    low, high = (heads * sin if inverse else heads).chunk(2, -1)
    other = torch.cat((high, -low), -1) if inverse else torch.cat((-high, low), -1) * sin
    return (heads * cos + other).to(x.dtype).reshape(x.shape)


def _formula(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, inverse: bool) -> Two:
    return _turned(q, cos, sin, inverse), _turned(k, cos, sin, inverse)


def _cuda(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, inverse: bool) -> Two:
    both = _calls[inverse].launch(q, k, cos, sin)
    if both is not None and both is not NotImplemented:
        return both
    if both is None and has_kernel(q, k, cos, sin):
        q, k, cos, sin = q.contiguous(), k.contiguous(), cos.contiguous(), sin.contiguous()
        q_out, k_out = torch.empty_like(q), torch.empty_like(k)
        tokens = q.numel() // (q.shape[-2] * q.shape[-1])
        key, dims = _problem(q, tokens, q.shape[-2], k.shape[-2], cos, inverse)
        if _kernel.launch(key, dims, stream_of(key[1]), (q, k, cos, sin, q_out, k_out)):
            return q_out, k_out
    return _formula(q, k, cos, sin, inverse)


def _problem(
    q: torch.Tensor, tokens: int, q_heads: int, k_heads: int, cos: torch.Tensor, inverse: bool
) -> tuple[Any, tuple[int, ...]]:
    size = q.shape[-1]
    key = (q.dtype, q.get_device(), (int(inverse),), (q_heads, k_heads, size))
    return key, (tokens, q_heads, k_heads, cos.numel() // size, size)


def _gradients(ctx: Any, dq: torch.Tensor, dk: torch.Tensor) -> Gradients:
    (inverse,) = ctx.others
    return (*_operator(dq, dk, *ctx.saved_tensors, not inverse), None, None)


# q: [..., HQ, D], k: [..., HKV, D], cos, sin: [C, D]. Token n, counted over all batches, takes row n % C.
_operator = Dispatched(
    "rotary(Tensor q, Tensor k, Tensor cos, Tensor sin, bool inverse) -> (Tensor, Tensor)",
    _cuda,
    _formula,
    lambda q, k, cos, sin, _: (contiguous_like(q), contiguous_like(k)),
    tensors=4,
)
_operator.differentiate((2, 3), _gradients, outputs=2)


def rotary(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> Two:
    """The rotary embedding of queries and keys in one kernel, as (q, k): apply_rotary_pos_emb of
    transformers' Llama, Qwen and Mistral, which is x * cos + rotate_half(x) * sin.

    q: [B, HQ, S, D], k: [B, HKV, S, D]; bf16, f16 or f32. The results are views of [B, S, H, D]; if q and k
        are too, as a projection gives them, nothing is copied. cos, sin: [B, S, D], [1, S, D] or [S, D], of
        q's type.

    Torch's own functions are used as rms_norm() says, for other shapes and types, for cos and sin that need
    gradients, and for DTensors.
    """
    if not IS_OFF and _is_ours(q, k, cos, sin):
        direct = is_direct(q, k, cos, sin)
        needs = q.requires_grad or k.requires_grad
        if (direct or applies(q, k, cos, sin)) and (is_compiling() or _is_there(q, k, cos, needs)):
            tables = cos.reshape(-1, cos.shape[-1]), sin.reshape(-1, sin.shape[-1])
            given = (q.transpose(1, 2), k.transpose(1, 2), *tables, False)
            q_out, k_out = _operator.direct(needs, *given) if direct else _operator(*given)
            return q_out.transpose(1, 2), k_out.transpose(1, 2)
    cos, sin = cos.unsqueeze(-3), sin.unsqueeze(-3)
    return q * cos + _half_turned(q) * sin, k * cos + _half_turned(k) * sin


def _half_turned(x: torch.Tensor) -> torch.Tensor:
    low, high = x.chunk(2, -1)
    return torch.cat((-high, low), -1)


def _is_ours(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> bool:
    return (
        q.dim() == k.dim() == 4
        and q.dtype in TYPES
        and q.dtype == k.dtype == cos.dtype == sin.dtype
        and (q.shape[0], q.shape[2:]) == (k.shape[0], k.shape[2:])
        and q.shape[3] % 2 == 0
        and cos.shape == sin.shape
        and cos.dim() in (2, 3)
        and cos.shape[-2:] == q.shape[2:]
        and (cos.dim() == 2 or cos.shape[0] in (1, q.shape[0]))
        and not (cos.requires_grad or sin.requires_grad)
    )


def _is_there(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, needs_gradients: bool) -> bool:
    if not has_kernel(q, k, cos):
        return False
    tokens, heads = q.shape[0] * q.shape[2], (q.shape[1], k.shape[1])
    problems = [_problem(q, tokens, *heads, cos, inverse) for inverse in (False, True)]
    return is_there(needs_gradients, *((_kernel, key, dims) for key, dims in problems))
