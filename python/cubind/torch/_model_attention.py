"""Attention of `transformers`: a model looks its implementation up by name at each call."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling

from .._switch import IS_OFF
from .._torch_access import PLAIN
from ._attention import attend, kept
from ._graph_attention import attend_in_graph, missing_mask, other_argument
from ._mask_builder import watch_builder
from ._masked_attention import attend_masked
from ._masks import UnsupportedError, mask_of

FUNCTIONS = "ALL_ATTENTION_FUNCTIONS"  # what an attention layer looks it up in
_SDPA = "transformers.integrations.sdpa_attention"


class Implementations:
    """What an attention layer finds under the name FUNCTIONS: transformers' own. A call of its "sdpa", with
    is_known also of its eager function, is cubind's if there is a kernel."""

    def __init__(self, theirs: Any, is_known: bool) -> None:
        self._theirs = theirs
        self._is_known = is_known
        self._sdpa: Callable[..., Any] = sys.modules[_SDPA].sdpa_attention_forward
        self._ours: dict[Callable[..., Any], Callable[..., Any]] = {}

    def get_interface(self, name: str, default: Callable[..., Any]) -> Callable[..., Any]:
        """Like that of ALL_ATTENTION_FUNCTIONS."""
        return self._own(self._theirs.get_interface(name, default), default)

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return self._own(self._theirs[name])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._theirs, name)

    def _own(self, found: Callable[..., Any], eager: Callable[..., Any] | None = None) -> Callable[..., Any]:
        if found is not self._sdpa and not (self._is_known and found is eager):
            return found
        if is_compiling():
            return _attending(found, found is self._sdpa)
        if found not in self._ours:
            self._ours[found] = _attending(found, found is self._sdpa)
        return self._ours[found]


def _attending(theirs: Callable[..., Any], is_sdpa: bool) -> Callable[..., Any]:
    def attend_or_theirs(
        module: torch.nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        dropout: float = 0.0,
        scaling: float | None = None,
        **named: Any,
    ) -> Any:
        if is_compiling():
            own = query, key, value, attention_mask, dropout, scaling, named
            return attend_in_graph(theirs, is_sdpa, module, *own)
        if attention_mask is None:
            attention_mask = missing_mask(module, query, key, is_sdpa, named)
        try:
            o = _attend(module, query, key, value, attention_mask, dropout, scaling, is_sdpa, named)
        except UnsupportedError as why:
            kept[str(why)] += 1
            o = NotImplemented
        if o is not NotImplemented:
            return o, None
        given = (query, key, value, attention_mask)
        return theirs(module, *given, dropout=dropout, scaling=scaling, **named)

    return attend_or_theirs


# [B, S, HQ, D]. NotImplemented: there is no kernel. Raises UnsupportedError.
def _attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float,
    scaling: float | None,
    is_sdpa: bool,
    named: dict[str, Any],
) -> Any:
    if IS_OFF or type(query) not in PLAIN:
        return NotImplemented
    if dropout:
        raise UnsupportedError("dropout")
    if other := other_argument(module, named):
        raise UnsupportedError(other)
    cap = named.get("softcap") or 0
    if cap and is_sdpa:  # which leaves it out
        raise UnsupportedError(
            'a soft-cap, which "sdpa" leaves out: load the model with attn_implementation="eager"'
        )
    if cap != int(cap):
        raise UnsupportedError(f"a soft-cap of {cap}")
    if attention_mask is None:
        if not is_sdpa:
            raise UnsupportedError("no mask")
        return _unmasked(module, query, key, value, scaling, named.get("is_causal"))
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    return attend_masked(query, key, value, mask_of(attention_mask, query, key), scale, int(cap))


# A sliding window comes with a mask unless all keys lie in it. Keys behind as many as there are queries are
# not written yet.
def _unmasked(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scaling: float | None,
    is_causal: bool | None,
) -> Any:
    queries = query.shape[2]
    causal = queries > 1 and (getattr(module, "is_causal", True) if is_causal is None else is_causal)
    if causal and key.shape[2] > queries:
        key, value = key[:, :, :queries], value[:, :, :queries]
    o = attend(query, key, value, causal, scaling, True)
    return o if o is NotImplemented else o.transpose(1, 2).contiguous()


def implementations(theirs: Any, is_known: bool) -> Implementations | None:
    """Of what an attention layer has under the name FUNCTIONS; None: it is not known. is_known: the layer's
    eager function computes what its name says."""
    if not (hasattr(theirs, "get_interface") or hasattr(theirs, "__getitem__")) or _SDPA not in sys.modules:
        return None
    watch_builder()
    return Implementations(theirs, is_known)


def other_attention(module: torch.nn.Module, is_known: bool) -> str:
    """Why an attention layer does not call cubind's attention; "" if it does."""
    name = getattr(getattr(module, "config", None), "_attn_implementation", None)
    return "" if name == "sdpa" or (is_known and name == "eager") else f"its attention is {name}"
