"""Attention: cubind::attention and cubind::attention_backward."""

from __future__ import annotations

import collections
import functools
import math
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling
from torch.nn import functional

from .._switch import IS_OFF
from .._torch_access import PLAIN
from ._attention_formula import backward_formula, formula
from ._call import Call
from ._dispatch import Dispatched, is_quiet
from ._dtensor import are_distributed, run_locally
from ._masks import UnsupportedError
from ._operator import Operator
from ._tensors import HALF

kept: collections.Counter[str] = collections.Counter()  # calls under masks and arguments, by the reason

_DIMS, _KNOWN = ("B", "HQ", "HKV", "SQ", "SK", "D"), ("HQ", "HKV", "D")
_FLAGS = ("CAUSAL", "LEFT", "RIGHT", "SOFT_CAP")
_HEAD_SIZES = (64, 80, 96, 128, 256)
FORWARD = Operator("flash_attention_forward", _DIMS, _FLAGS, _KNOWN)
_backward = Operator("flash_attention_backward", _DIMS, _FLAGS, _KNOWN)
_Q, _KV, _LSE = "B HQ SQ D", "B HKV SK D", "B HQ SQ f32"
_INPUTS = {"q": f"{_Q} rows", "k": f"{_KV} rows", "v": f"{_KV} rows"}


def has_kernel(q: Tensor, *_: Tensor) -> bool:
    return q.dtype in HALF and q.shape[-1] in _HEAD_SIZES


OPTIONS: dict[str, Any] = {"numbers": {"scale": 0.125}, "takes": has_kernel}  # of each call


def _forward_call(*mask: int) -> Call:
    outputs = {"o": f"{_Q} as:0", "lse": _LSE}
    return FORWARD.call(_INPUTS, outputs, flags=tuple(map(int, mask)), constants=mask, **OPTIONS)


def _backward_call(*mask: int) -> Call:
    inputs = {"d_o": f"{_Q} as:1", **_INPUTS, "o": f"{_Q} as:1", "lse": _LSE}
    outputs = {"dq": f"{_Q} as:1", "dk": f"{_KV} as:2", "dv": f"{_KV} as:3"}
    return _backward.call(inputs, outputs, flags=tuple(map(int, mask)), constants=mask, **OPTIONS)


_PLAIN_MASKS = ((False, 0, 0, 0), (True, 0, 0, 0))
_OTHERS = "bool causal, int left, int right, int soft_cap, float scale"
_backward_operator = Dispatched(
    "attention_backward(Tensor d_o, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, "
    f"{_OTHERS}) -> (Tensor, Tensor, Tensor)",
    [_backward_call(*mask) for mask in _PLAIN_MASKS],
    backward_formula,
    make=_backward_call,
)
_operator = Dispatched(
    f"attention(Tensor q, Tensor k, Tensor v, {_OTHERS}) -> (Tensor, Tensor)",
    [_forward_call(*mask) for mask in _PLAIN_MASKS],
    formula,
    make=_forward_call,
)
_operator.differentiate((0, 1, 2, 3, 4), _backward_operator, needs_kernels=True)


@functools.cache
def masked_call(causal: bool, left: int = 0, right: int = 0, soft_cap: int = 0) -> Call:
    """Attention of heads with these flags of the kernel."""
    return _operator.call(causal, left, right, soft_cap)


# Whether torch means the same by it: with a causal mask it aligns the first query with the first key, the
# kernels the last with the last.
def _is_ours(q: torch.Size, k: torch.Size, is_causal: bool, enable_gqa: bool) -> bool:
    return q == k or (
        len(q) == len(k) == 4
        and (q[1] == k[1] or (enable_gqa and k[1] > 0 and q[1] % k[1] == 0))
        and (not is_causal or q[2] == k[2])
    )


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """torch.nn.functional.scaled_dot_product_attention, by cubind's kernels on a GPU.

    query: [B, HQ, SQ, D]; key, value: [B, HKV, SK, D]; bf16 or f16, D of 64, 80, 96, 128 or 256.
    scale: None is 1 / sqrt(D). enable_gqa: HQ may be a multiple of HKV.

    Nothing is copied for tensors in C order and for views of [B, S, H, D], as projections give them, also one
    projection for all three. The result and the gradients are such views where the query, key or value is.

    attn_mask: one that is used for the second time, such as one for all layers, is looked at: is it causal
    (the last query sees the last key), a window of that, keys that are padded on one side, or padding on
    the left of a causal one, the kernels compute the same without reading it.

    Torch's own function is used as rms_norm() says, for other sizes, types and masks, with dropout_p, with
    is_causal if there are not as many keys as queries, and in compiled graphs.

    DTensors give one as rms_norm() says; batches and heads may be sharded.
    """
    o: Any = NotImplemented
    if attn_mask is None and dropout_p == 0:
        o = attend(query, key, value, is_causal, scale, enable_gqa)
    elif attn_mask is not None and not dropout_p and not is_causal:
        o = _under(attn_mask, query, key, value, scale, enable_gqa)
    if o is not NotImplemented:
        return o
    return functional.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )


def _under(
    mask: Tensor, query: Tensor, key: Tensor, value: Tensor, scale: float | None, enable_gqa: bool
) -> Any:
    if IS_OFF or not all(type(one) in PLAIN for one in (query, mask)):
        return NotImplemented
    if not is_quiet():  # a batch of masks cannot be looked at, and a trace would keep what was seen
        return NotImplemented
    if query.is_nested or query.dim() != 4 or not has_kernel(query):
        return NotImplemented
    if not _is_ours(query.shape, key.shape, False, enable_gqa):
        return NotImplemented
    from ._masked_attention import attend_masked, proven  # which are of this module's operators

    try:
        factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
        o = attend_masked(query, key, value, proven(mask, query, key), factor, 0)
    except UnsupportedError as why:
        kept[str(why)] += 1
        return NotImplemented
    return o if o is NotImplemented else o.transpose(1, 2)


def attend(
    query: Tensor, key: Tensor, value: Tensor, is_causal: bool, scale: float | None, enable_gqa: bool
) -> Any:
    """scaled_dot_product_attention() without mask and dropout. NotImplemented: torch's own is called."""
    if IS_OFF or is_compiling():
        return NotImplemented
    if (
        type(query) in PLAIN
        and not query.is_nested
        and _is_ours(query.shape, key.shape, is_causal, enable_gqa)
    ):
        factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
        o = masked_call(is_causal)(None, query, key, value, factor)
        if o is not NotImplemented:
            return o
    if not are_distributed(query, key, value):
        return NotImplemented
    call = functools.partial(
        scaled_dot_product_attention, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa
    )
    heads = {"query": query, "key": key, "value": value}
    return run_locally("scaled_dot_product_attention", call, heads, 2)
