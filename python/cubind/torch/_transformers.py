"""Modules of `transformers` that compute what cubind's functions compute."""

from __future__ import annotations

import copy
import copyreg
import functools
from collections.abc import Callable
from typing import Any, cast

import torch
from torch.nn import functional

from ._activation import geglu, gelu, swiglu
from ._decoder import attention_forward, is_decoders, loss_members, turns
from ._model_attention import other_attention
from ._rms_norm import rms_norm

_Forward = Callable[..., torch.Tensor]
_MARK = "_is_cubinds"  # of a class that replaces another one


# weight * x / sqrt(mean(x^2) + variance_epsilon), in the wider type where weight and x differ.
def _rms_norm(self: Any, hidden_states: torch.Tensor) -> torch.Tensor:
    if hidden_states.dtype != self.weight.dtype:
        normed = functional.rms_norm(hidden_states, self.weight.shape, None, self.variance_epsilon)
        product: torch.Tensor = self.weight * normed
        return product
    return rms_norm(hidden_states, self.weight.shape, self.weight, self.variance_epsilon)


# GELU by tanh, written as eight functions of torch.
def _new_gelu(self: Any, input: torch.Tensor) -> torch.Tensor:
    return gelu(input, "tanh")


# down_proj(act_fn(gate_proj(x)) * up_proj(x)).
def _swiglu(self: Any, x: torch.Tensor) -> torch.Tensor:
    down: torch.Tensor = self.down_proj(swiglu(self.gate_proj(x), self.up_proj(x)))
    return down


def _geglu(self: Any, x: torch.Tensor) -> torch.Tensor:
    down: torch.Tensor = self.down_proj(geglu(self.gate_proj(x), self.up_proj(x), "tanh"))
    return down


_GATED = ("GemmaMLP", "Gemma2MLP", "Gemma3MLP", "LlamaMLP", "MistralMLP", "Qwen2MLP", "Qwen3MLP")
_OF_GATE: dict[str, _Forward] = {
    **dict.fromkeys(("SiLU", "SiLUActivation"), _swiglu),
    **dict.fromkeys(("GELUTanh", "NewGELUActivation", "PytorchGELUTanh"), _geglu),
}
_OF_CLASS: dict[str, _Forward] = {
    "LlamaRMSNorm": _rms_norm,
    "MistralRMSNorm": _rms_norm,
    "MixtralRMSNorm": _rms_norm,
    "NewGELUActivation": _new_gelu,
    "Phi3RMSNorm": _rms_norm,
    "Qwen2RMSNorm": _rms_norm,
    "Qwen3RMSNorm": _rms_norm,
}


def class_for(module: torch.nn.Module, chunked_loss: bool) -> tuple[type | None, str]:
    """The class that computes the same by cubind's functions; chunked_loss: as replace() has it. None: there
    is none. With the reason for a module that one might expect it, or more of it, for."""
    cls = type(module)
    if not cls.__module__.startswith("transformers.") or hasattr(cls, _MARK):
        return None, ""
    forward: Callable[..., Any] | None = _OF_CLASS.get(cls.__name__)
    if cls.__name__ in _GATED:
        gate = type(module.act_fn).__name__
        forward = _OF_GATE.get(gate)
        if forward is None:
            return None, f"its gate is {gate}"
    if forward is not None:
        return _with_forward(cls, forward), ""
    forward, why = attention_forward(cls)
    if forward is not None:
        why = why or other_attention(module, is_decoders(cls))
        return (_with_forward(cls, forward) if turns(forward) or not why else None), why
    if why:
        return None, why
    members = loss_members(module, chunked_loss)
    return (_with_members(cls, members) if members is not None else None), ""


def has_own_loss(model: Any) -> bool:
    """Whether class_for() has given the model cubind's loss."""
    return hasattr(type(model), _MARK) and "loss_function" in vars(type(model))


# One class for all modules of a class: torch.compile guards on it. In a compiled graph the module is what it
# was: the compiler fuses it with its neighbours.
@functools.cache
def _with_forward(cls: type, forward: Callable[..., Any]) -> type:
    theirs = cast(Any, cls).forward

    @functools.wraps(theirs)
    def forward_unless_compiled(self: Any, *inputs: Any, **named: Any) -> Any:
        return (theirs if torch.compiler.is_compiling() else forward)(self, *inputs, **named)

    return _with_members(cls, {"forward": forward_unless_compiled})


def _with_members(cls: type, given: dict[str, Any]) -> type:
    # A pickled module comes back as what it was: a process that loads it need not have cubind.
    def reduce(self: Any, _: Any) -> tuple[Any, ...]:
        return copyreg._reconstructor, (cls, object, None), self.__dict__  # type: ignore[attr-defined]

    def deepcopy(self: Any, memo: dict[int, Any]) -> Any:
        memo[id(self)] = twin = replaced.__new__(replaced)
        twin.__setstate__(copy.deepcopy(self.__dict__, memo))
        return twin

    members = {
        **given,
        "__reduce_ex__": reduce,
        "__deepcopy__": deepcopy,
        "__module__": cls.__module__,
        _MARK: True,
    }
    replaced: type = type(cls.__name__, (cls,), members)
    return replaced
