"""What attention's kernels compute, by torch's functions."""

from __future__ import annotations

import math

import torch

from .. import _torch_private as private
from ._tensors import ordered_as, wide

Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


# k or v with a head for each head of the queries.
def _spread(heads: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    return wide(heads).repeat_interleave(q.shape[1] // heads.shape[1], dim=1)


def _scores(q: torch.Tensor, k: torch.Tensor, causal: bool, scale: float) -> torch.Tensor:
    scores = wide(q) @ _spread(k, q).transpose(-2, -1) * scale
    if causal:
        seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device)
        scores = scores.masked_fill(~seen.tril(k.shape[2] - q.shape[2]), -math.inf)
    return scores


def formula(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The output, in the order of q, and the logsumexp of each row."""
    known = private.flash_attention(q, k, v, causal, scale)
    if known is not None:
        return ordered_as(known[0], q), known[1].contiguous()
    scores = _scores(q, k, causal, scale)
    lse = scores.logsumexp(-1)
    o = _weights(scores, lse) @ _spread(v, q)
    return ordered_as(o.to(q.dtype), q), lse.contiguous()


# A query that sees no key has weights of 0.
def _weights(scores: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
    return (scores - lse.unsqueeze(-1)).exp().masked_fill((lse == -math.inf).unsqueeze(-1), 0.0)


def backward_formula(
    d_o: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    causal: bool,
    scale: float,
) -> Three:
    """The gradients of q, k and v, each in the order of its tensor."""
    known = private.flash_attention_backward(d_o, q, k, v, causal, scale)
    if known is not None:
        return ordered_as(known[0], q), ordered_as(known[1], k), ordered_as(known[2], v)
    weights = _weights(_scores(q, k, causal, scale), lse)
    grad = wide(d_o)
    slopes = grad @ _spread(v, q).transpose(-2, -1)
    slopes = weights * (slopes - (grad * wide(o)).sum(-1, keepdim=True)) * scale
    dq = slopes @ _spread(k, q)
    shape = (k.shape[0], k.shape[1], -1, k.shape[2], k.shape[3])
    dk = (slopes.transpose(-2, -1) @ wide(q)).view(shape).sum(2)
    dv = (weights.transpose(-2, -1) @ grad).view(shape).sum(2)
    return ordered_as(dq.to(q.dtype), q), ordered_as(dk.to(k.dtype), k), ordered_as(dv.to(v.dtype), v)
