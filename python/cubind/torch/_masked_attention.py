"""Attention under a mask that the kernels have, and proofs that a caller's own mask is such a one."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from .. import _torch_private as private
from ._attention import masked_call
from ._gpu import is_capturing
from ._masks import Mask, Pattern, UnsupportedError, marks, version_of
from ._packed_attention import attend_packed, rows_of


def attend_masked(query: Tensor, key: Tensor, value: Tensor, mask: Mask, scale: float, soft_cap: int) -> Any:
    """The output as [B, S, HQ, D]. NotImplemented: there is no kernel. Raises UnsupportedError."""
    B, heads, S, D = query.shape
    if mask.is_dense:
        o = masked_call(mask.causal, mask.pattern.left, 0, soft_cap)(None, query, key, value, scale)
        return o if o is NotImplemented else o.transpose(1, 2).contiguous()
    kv_heads = key.shape[1]
    # Of a cache, each head of keys is a sequence of its own, in the memory of all heads.
    by_heads = S == 1 and mask.pattern.sequences is None and key.is_contiguous() and value.is_contiguous()
    given = mask.packed(kv_heads if by_heads else 1, scale, soft_cap)
    if by_heads:
        q = query.reshape(1, B * kv_heads, heads // kv_heads, D).transpose(1, 2)
        k, v = (each.reshape(1, 1, -1, D) for each in (key, value))
    else:
        q, k, v = rows_of(query), rows_of(key), rows_of(value)
    o = attend_packed(q, k, v, given)
    return o if o is NotImplemented else o.transpose(1, 2).reshape(B, S, heads, D)


# ---- A caller's own mask ----


@dataclasses.dataclass
class _Used:
    """A mask that was used at this version. found: what it is, or why none of the kernels'."""

    version: int
    found: Mask | str = ""


def proven(tensor: Tensor, q: Tensor, k: Tensor) -> Mask:
    """What mask the tensor is. It is looked at when the same tensor is used for the second time, so that one
    that is made for each call costs nothing; at once where the call may be computed again, which has to save
    the same for the backward pass. Raises UnsupportedError."""
    if tensor.requires_grad:
        raise UnsupportedError("a mask with gradients")
    known = marks.get(tensor)
    if isinstance(known, Mask):
        return known.of(tensor, q, k)
    if tensor.is_inference():
        raise UnsupportedError("an inference tensor, which may be changed unnoticed")
    if not isinstance(known, _Used) or known.version != version_of(tensor):
        known = _Used(version_of(tensor))
        marks.put(tensor, known)
        if not private.saves_by_hooks():
            raise UnsupportedError("a mask that was made for this call, or is used for the first time")
    if known.found == "":
        try:
            known.found = _proven(tensor, q, k)
        except UnsupportedError as why:
            known.found = str(why)
    if isinstance(known.found, str):
        raise UnsupportedError(known.found)
    return known.found.of(tensor, q, k)


# Waits once for the GPU.
def _proven(tensor: Tensor, q: Tensor, k: Tensor) -> Mask:
    if is_capturing():
        raise UnsupportedError("a mask that was not used before the CUDA graph")
    B, S, K = q.shape[0], q.shape[2], k.shape[2]
    if not (B and S and K):
        raise UnsupportedError("nothing to attend to")
    if tensor.dim() > 2 and tensor.shape[-3] != 1:
        raise UnsupportedError("a mask of its own for each head")
    seen = tensor if tensor.dtype == torch.bool else tensor == 0
    seen = seen.expand(B, 1, S, K)[:, 0]
    real = seen.any(1)
    ahead = torch.arange(K, device=seen.device) - torch.arange(K - S, K, device=seen.device)[:, None]
    left = seen[:, -1].sum(-1).amax()
    whole = real[:, None].expand_as(seen)
    causal = whole & (ahead <= 0) & real[:, None, -1:]  # the last query sees the last key
    facts = (
        _has_no_bias(tensor),
        (seen == whole).all(),
        (seen == causal).all(),
        (seen == (causal & (ahead > -left))).all(),
        real.all(),
        left,
    )
    is_mask, is_whole, is_causal, has_window, is_full, size = torch.stack([f.long() for f in facts]).tolist()
    if not is_mask or not (is_whole or is_causal or has_window):
        raise UnsupportedError("a mask of no form that the kernels have")
    given = {"batch_size": B, "q_length": S, "kv_length": K, "q_offset": K - S, "device": seen.device}
    pattern = Pattern(not is_whole, 0 if is_whole or is_causal else size)
    return Mask(tensor, {**given, "attention_mask": None if is_full else real}, lambda: pattern)


# A float mask says more than which keys are seen if it has other values, or a query without a key: torch
# gives that one the mean of the values.
def _has_no_bias(tensor: Tensor) -> Tensor:
    if tensor.dtype == torch.bool:
        return torch.ones((), dtype=torch.bool, device=tensor.device)
    seen = tensor == 0
    return (seen | (tensor <= torch.finfo(tensor.dtype).min)).all() & seen.any(-1).all()
