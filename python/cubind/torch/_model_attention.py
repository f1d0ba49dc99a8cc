"""Attention of `transformers`: a model looks its implementation up by name at each call."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

from ._attention import attend

FUNCTIONS = "ALL_ATTENTION_FUNCTIONS"  # what an attention layer looks it up in
_SDPA = "transformers.integrations.sdpa_attention"
# Arguments that change the scores, or that transformers' own function refuses.
_OTHERS = ("position_bias", "softcap", "output_attentions")


class Implementations:
    """What an attention layer finds under the name FUNCTIONS: transformers' own. A call of its "sdpa" without
    a mask and dropout is cubind's if there is a kernel."""

    def __init__(self, theirs: Any) -> None:
        self._theirs = theirs
        self._sdpa: Callable[..., Any] = sys.modules[_SDPA].sdpa_attention_forward

    def get_interface(self, name: str, default: Callable[..., Any]) -> Callable[..., Any]:
        """Like that of ALL_ATTENTION_FUNCTIONS."""
        return self._own(self._theirs.get_interface(name, default))

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return self._own(self._theirs[name])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._theirs, name)

    def _own(self, found: Callable[..., Any]) -> Callable[..., Any]:
        return self._attend if found is self._sdpa else found

    # A sliding window comes with a mask unless all keys lie in it.
    def _attend(
        self,
        module: torch.nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: torch.Tensor | None,
        dropout: float = 0.0,
        scaling: float | None = None,
        is_causal: bool | None = None,
        **named: Any,
    ) -> Any:
        if (
            attention_mask is None
            and dropout == 0
            and not any(named.get(other) is not None for other in _OTHERS)
        ):
            causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
            o = attend(query, key, value, query.shape[2] > 1 and causal, scaling, True)
            if o is not NotImplemented:
                return o.transpose(1, 2).contiguous(), None
        given = (query, key, value, attention_mask)
        return self._sdpa(module, *given, dropout=dropout, scaling=scaling, is_causal=is_causal, **named)


def implementations(theirs: Any) -> Implementations | None:
    """Of what an attention layer has under the name FUNCTIONS; None: it is not known."""
    known = hasattr(theirs, "get_interface") or hasattr(theirs, "__getitem__")
    return Implementations(theirs) if known and _SDPA in sys.modules else None


def other_attention(module: torch.nn.Module) -> str:
    """Why an attention layer does not call cubind's attention; "" if it does."""
    name = getattr(getattr(module, "config", None), "_attn_implementation", None)
    return "" if name == "sdpa" else f"its attention is {name}"
