"""Attention of layers of `transformers` in a compiled graph. Where _mask_builder makes no mask for it, the
layer's flag for causal attention and its window say what is seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from . import _call
from ._attention import has_kernel
from ._choices import IN_GRAPH, is_torchs

# Arguments that change the scores, or that only transformers' own function knows.
_OTHERS = ("position_bias", "output_attentions", "head_mask", "s_aux")


def other_argument(module: torch.nn.Module, named: dict[str, Any]) -> str:
    """The name of an argument of a layer's attention that the kernels do not have; "" if there is none."""
    for name in _OTHERS:
        if named.get(name) is not None and named[name] is not False:
            return name
    return "output_attentions" if getattr(module.config, "output_attentions", False) else ""


def attend_in_graph(
    theirs: Callable[..., Any],
    is_sdpa: bool,
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float,
    scaling: float | None,
    named: dict[str, Any],
) -> Any:
    """What the layer's function returns. theirs: that function, "sdpa" or eager."""
    rest = {"dropout": dropout, "scaling": scaling, **named}
    if attention_mask is not None or is_torchs(module, "attention"):
        return theirs(module, query, key, value, attention_mask, **rest)
    causal, left = _seen(module, query, key, named)
    cap = named.get("softcap") or 0
    known = not dropout and not other_argument(module, named) and not (is_sdpa and cap)
    if known and cap == int(cap) and query.shape[2] == key.shape[2] and _is_ours(query, key, value):
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        o = torch.ops.cubind.attention.default(query, key, value, causal, left, 0, int(cap), scale)[0]
        return o.transpose(1, 2).contiguous(), None
    return theirs(module, query, key, value, missing_mask(module, query, key, is_sdpa, named), **rest)


def missing_mask(
    module: torch.nn.Module, query: Tensor, key: Tensor, is_sdpa: bool, named: dict[str, Any]
) -> Tensor | None:
    """What a layer needs that was given no mask since its attention is cubind's in graphs; it may be called
    outside of one, after a graph break. None: its flag says all."""
    causal, left = _seen(module, query, key, named)
    if not causal or "attention" not in getattr(module, IN_GRAPH, ()) or (is_sdpa and not left):
        return None
    return _mask(query, key.shape[2], left, is_sdpa)


# Whether attention is causal, and the window if it leaves out keys, else 0.
def _seen(module: torch.nn.Module, query: Tensor, key: Tensor, named: dict[str, Any]) -> tuple[bool, int]:
    told = named.get("is_causal")
    causal = query.shape[2] > 1 and (getattr(module, "is_causal", True) if told is None else told)
    window = named.get("sliding_window") or 0
    return bool(causal), window if causal and window < key.shape[2] else 0


def _is_ours(query: Tensor, key: Tensor, value: Tensor) -> bool:
    return (
        _call.are_plain((query, key, value))
        and not torch.is_autocast_enabled("cuda")
        and query.dim() == 4
        and query.dtype == key.dtype == value.dtype
        and key.shape == value.shape
        and query.shape[3] == key.shape[3]
        and has_kernel(query)
    )


# The mask that was not made.
def _mask(query: Tensor, keys: int, left: int, is_sdpa: bool) -> Tensor:
    k = torch.arange(keys, device=query.device)
    q = torch.arange(query.shape[2], device=query.device)[:, None]
    seen = (k <= q) & (k > q - left) if left else k <= q
    if is_sdpa:
        return seen[None, None]
    hidden = torch.full((), torch.finfo(query.dtype).min, dtype=query.dtype, device=query.device)
    return torch.where(seen, torch.zeros_like(hidden), hidden)[None, None]
