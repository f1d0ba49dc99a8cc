"""What attention's kernels compute, by torch's functions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import _torch_private as private
from ._tensors import Three, Two, ordered_as, wide


class Scores(NamedTuple):
    """What a kernel's flags say of a score. left, right: 0, or how many keys a query sees, back from its own
    and ahead of it. soft_cap: 0, or c of c * tanh(score / c)."""

    causal: bool = False
    left: int = 0
    right: int = 0
    soft_cap: int = 0


class _Rows(NamedTuple):
    """Rows of sequences. sequence: its number, another one for each row that is in none. from_end: how many
    rows before the sequence's end, negative."""

    sequence: Tensor
    from_end: Tensor


def _dense(rows: int, device: torch.device) -> _Rows:
    positions = torch.arange(-rows, 0, device=device)
    return _Rows(torch.zeros_like(positions), positions)


# Rows in no sequence are in sequence `none`.
def _packed(rows: int, bounds: Tensor, lengths: Tensor | None, none: int) -> _Rows:
    row = torch.arange(rows, device=bounds.device)
    found = torch.searchsorted(bounds[1:], row, right=True).clamp_max(bounds.shape[0] - 2)
    begin, end = bounds[found], bounds[found + 1]
    if lengths is not None:
        end = torch.minimum(end, begin + lengths[found])
    is_inside = (row >= begin) & (row < end)
    return _Rows(torch.where(is_inside, found, none), row - end)


# Queries [SQ, 1] and keys [SK], the last ones of a sequence next to each other.
def _seen(queries: _Rows, keys: _Rows, scores: Scores) -> Tensor:
    ahead = keys.from_end - queries.from_end[:, None]
    seen = keys.sequence == queries.sequence[:, None]
    right = 1 if scores.causal else scores.right
    if right:
        seen = seen & (ahead < right)
    if scores.left:
        seen = seen & (ahead > -scores.left)
    return seen


# The same of heads that are one sequence each.
def _seen_densely(q: Tensor, k: Tensor, scores: Scores) -> Tensor:
    return _seen(_dense(q.shape[2], q.device), _dense(k.shape[2], q.device), scores)


# k or v with a head for each head of the queries.
def _spread(heads: Tensor, q: Tensor) -> Tensor:
    return wide(heads).repeat_interleave(q.shape[1] // heads.shape[1], dim=1)


# The scores, -inf where a query does not see the key, and their derivatives by the product with k.
def _scores(q: Tensor, k: Tensor, seen: Tensor, cap: int, scale: float) -> tuple[Tensor, Tensor | float]:
    scores = wide(q) @ _spread(k, q).transpose(-2, -1) * scale
    slope: Tensor | float = scale
    if cap:
        tangent = (scores / cap).tanh()
        scores, slope = cap * tangent, scale * (1 - tangent.square())
    return scores.masked_fill(~seen, -math.inf), slope


def formula(
    q: Tensor, k: Tensor, v: Tensor, causal: bool, left: int, right: int, soft_cap: int, scale: float
) -> Two:
    """The output, in the order of q, and the logsumexp of each row."""
    if not (left or right or soft_cap):
        known = private.flash_attention(q, k, v, causal, scale)
        if known is not None:
            return ordered_as(known[0], q), known[1].contiguous()
    seen = _seen_densely(q, k, Scores(causal, left, right, soft_cap))
    return _forward(q, k, v, seen, soft_cap, scale)


def _forward(q: Tensor, k: Tensor, v: Tensor, seen: Tensor, cap: int, scale: float) -> Two:
    scores, _ = _scores(q, k, seen, cap, scale)
    lse = scores.logsumexp(-1)
    o = _weights(scores, lse) @ _spread(v, q)
    return ordered_as(o.to(q.dtype), q), lse.contiguous()


# A query that sees no key has weights of 0.
def _weights(scores: Tensor, lse: Tensor) -> Tensor:
    return (scores - lse.unsqueeze(-1)).exp().masked_fill((lse == -math.inf).unsqueeze(-1), 0.0)


def backward_formula(
    d_o: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    o: Tensor,
    lse: Tensor,
    causal: bool,
    left: int,
    right: int,
    soft_cap: int,
    scale: float,
) -> Three:
    """The gradients of q, k and v, each in the order of its tensor."""
    if not (left or right or soft_cap):
        known = private.flash_attention_backward(d_o, q, k, v, causal, scale)
        if known is not None:
            return ordered_as(known[0], q), ordered_as(known[1], k), ordered_as(known[2], v)
    seen = _seen_densely(q, k, Scores(causal, left, right, soft_cap))
    return _backward(d_o, q, k, v, o, lse, seen, soft_cap, scale)


def _backward(
    d_o: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor, lse: Tensor, seen: Tensor, cap: int, scale: float
) -> Three:
    scores, slope = _scores(q, k, seen, cap, scale)
    weights = _weights(scores, lse)
    grad = wide(d_o)
    slopes = grad @ _spread(v, q).transpose(-2, -1)
    slopes = weights * (slopes - (grad * wide(o)).sum(-1, keepdim=True)) * slope
    dq = slopes @ _spread(k, q)
    shape = (k.shape[0], k.shape[1], q.shape[1] // k.shape[1], k.shape[2], k.shape[3])
    dk = (slopes.transpose(-2, -1) @ wide(q)).view(shape).sum(2)
    dv = (weights.transpose(-2, -1) @ grad).view(shape).sum(2)
    return ordered_as(dq.to(q.dtype), q), ordered_as(dk.to(k.dtype), k), ordered_as(dv.to(v.dtype), v)


# ---- Packed sequences: [1, heads, rows, D] ----


class Packed(NamedTuple):
    """What the operator of packed sequences has besides its tensors of heads. Without gaps the lengths, and
    without cross the bounds of keys, are any tensors of this shape. spread: what the kernel is tuned for."""

    q_bounds: Tensor
    k_bounds: Tensor
    q_lengths: Tensor
    k_lengths: Tensor
    causal: bool
    left: int
    right: int
    soft_cap: int
    gaps: bool
    cross: bool
    spread: bool
    scale: float

    def seen(self, q: Tensor, k: Tensor) -> Tensor:
        queries = _packed(q.shape[2], self.q_bounds, self.q_lengths if self.gaps else None, -1)
        bounds, lengths = (self.k_bounds, self.k_lengths) if self.cross else (self.q_bounds, self.q_lengths)
        keys = _packed(k.shape[2], bounds, lengths if self.gaps else None, -2)
        return _seen(queries, keys, Scores(self.causal, self.left, self.right, self.soft_cap))


def packed_formula(q: Tensor, k: Tensor, v: Tensor, *others: Any) -> Two:
    """As formula(), for each sequence by itself. others: of Packed."""
    given = Packed(*others)
    o, lse = _forward(q, k, v, given.seen(q, k), given.soft_cap, given.scale)
    return o, lse[0]


def packed_backward_formula(
    d_o: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor, lse: Tensor, *others: Any
) -> Three:
    """As backward_formula(), for each sequence by itself."""
    given = Packed(*others)
    return _backward(d_o, q, k, v, o, lse[None], given.seen(q, k), given.soft_cap, given.scale)
