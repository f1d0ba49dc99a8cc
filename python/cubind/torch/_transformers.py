"""Modules of `transformers` that compute what cubind's functions compute."""

from __future__ import annotations

import copy
import copyreg
import functools
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional

from ._activation import geglu, gelu, swiglu
from ._choices import IN_GRAPH, is_torchs, members
from ._decoder import attention_forward, is_decoders, loss_members, turns
from ._embedding import EMBEDDING, is_large
from ._experts import experts_forward, other_experts
from ._mask_builder import mask_members
from ._model_attention import other_attention
from ._rms_norm import rms_norm

_Forward = Callable[..., Tensor]
_MARK = "_is_cubinds"  # of a class that replaces another one
_REPLACED = "it is replaced already: other options need Replacement.undo() first"


# weight * x / sqrt(mean(x^2) + variance_epsilon), in the wider type where weight and x differ.
def _rms_norm(self: Any, hidden_states: Tensor) -> Tensor:
    if hidden_states.dtype != self.weight.dtype:
        normed = functional.rms_norm(hidden_states, self.weight.shape, None, self.variance_epsilon)
        return self.weight * normed
    return rms_norm(hidden_states, self.weight.shape, self.weight, self.variance_epsilon)


# GELU by tanh, written as eight functions of torch.
def _new_gelu(self: Any, input: Tensor) -> Tensor:
    return gelu(input, "tanh")


# down_proj(act_fn(gate_proj(x)) * up_proj(x)).
def _swiglu(self: Any, x: Tensor) -> Tensor:
    return self.down_proj(swiglu(self.gate_proj(x), self.up_proj(x)))


def _geglu(self: Any, x: Tensor) -> Tensor:
    return self.down_proj(geglu(self.gate_proj(x), self.up_proj(x), "tanh"))


_GATED = (
    "GemmaMLP",
    "Gemma2MLP",
    "Gemma3MLP",
    "LlamaMLP",
    "MistralMLP",
    "Qwen2MLP",
    "Qwen3MLP",
    "Qwen3MoeMLP",
)
_OF_GATE: dict[str, _Forward] = {
    **dict.fromkeys(("SiLU", "SiLUActivation"), _swiglu),
    **dict.fromkeys(("GELUTanh", "NewGELUActivation", "PytorchGELUTanh"), _geglu),
}
_NORMS = (
    "LlamaRMSNorm", "MistralRMSNorm", "MixtralRMSNorm", "Phi3RMSNorm", "Qwen2RMSNorm", "Qwen3RMSNorm",
    "Qwen3MoeRMSNorm",
)  # fmt: skip
_OF_CLASS: dict[str, _Forward] = {**dict.fromkeys(_NORMS, _rms_norm), "NewGELUActivation": _new_gelu}


def class_for(module: torch.nn.Module, chunked_loss: bool, detached_logits: bool) -> tuple[type | None, str]:
    """The class that computes the same by cubind's functions; chunked_loss, detached_logits: as replace() has
    them. None: there is none. With the reason for a module that one might expect it, or more of it, for."""
    cls = type(module)
    if not cls.__module__.startswith("transformers.") or hasattr(cls, _MARK):
        return None, _REPLACED if hasattr(cls, _MARK) else ""
    forward: Callable[..., Any] | None = _OF_CLASS.get(cls.__name__)
    if cls.__name__ in _GATED:
        gate = type(module.act_fn).__name__
        forward = _OF_GATE.get(gate)
        if forward is None:
            return None, f"its gate is {gate}"
    if forward is not None:
        return with_forward(cls, forward, "norm" if forward is _rms_norm else "activation"), ""
    found, why = _class_by_name(module)
    if found is None and not why:
        own = loss_members(module, chunked_loss, detached_logits)
        found = _with_members(cls, {**own, **members("loss")}) if own is not None else None
    return found, why


# Of a module that looks up by name at each call how it computes.
def _class_by_name(module: torch.nn.Module) -> tuple[type | None, str]:
    cls = type(module)
    experts = experts_forward(cls)
    if experts is not None:
        why = other_experts(module)
        return (None if why else with_forward(cls, experts, "experts")), why
    forward, why = attention_forward(cls)
    if forward is None:
        return None, why
    why = why or other_attention(module, is_decoders(cls))
    return (_with_attention(cls, forward) if turns(forward) or not why else None), why


def class_in_graphs(module: torch.nn.Module) -> type | None:
    """The class that computes the same by other functions of torch, in compiled graphs alone. None: there is
    none."""
    cls = type(module)
    if is_large(module):
        return _embedding()
    if not cls.__module__.startswith("transformers.") or hasattr(cls, _MARK):
        return None
    own = mask_members(cls, _knows_windows(module))
    return _with_members(cls, {**own, **members("attention")}) if own else None


# Whether all its attention layers make up for a mask that is missing (_graph_attention).
def _knows_windows(model: torch.nn.Module) -> bool:
    layers = [type(one) for one in model.modules() if type(one).__name__.endswith("Attention")]
    return bool(layers) and all(map(is_decoders, layers))


@functools.cache
def _embedding() -> type:
    return _with_members(torch.nn.Embedding, EMBEDDING)


def has_own_loss(model: Any) -> bool:
    """Whether class_for() has given the model cubind's loss."""
    return hasattr(type(model), _MARK) and "loss_function" in vars(type(model))


@functools.cache
def with_forward(cls: type, forward: Callable[..., Any], kind: str) -> type:
    """One class for all modules of a class: torch.compile guards on it. In a compiled graph the module is
    what it was, which the compiler fuses with its neighbours, unless another choice was made."""
    theirs = cast(Any, cls).forward

    @functools.wraps(theirs)
    def forward_unless_torchs(self: Any, *inputs: Any, **named: Any) -> Any:
        return (theirs if is_torchs(self, kind) else forward)(self, *inputs, **named)

    return _with_members(cls, {"forward": forward_unless_torchs, **members(kind)})


@functools.cache
def _with_attention(cls: type, forward: Callable[..., Any]) -> type:
    theirs = cast(Any, cls).forward
    kinds = ("attention", "rotary") if turns(forward) else ("attention",)
    rotary_alone, attention_alone = (
        attention_forward(cls, one)[0] or theirs for one in ("rotary", "attention")
    )

    @functools.wraps(theirs)
    def forward_by_choice(self: Any, *inputs: Any, **named: Any) -> Any:
        if is_torchs(self, "attention"):
            chosen = theirs if is_torchs(self, "rotary") else rotary_alone
        else:
            chosen = attention_alone if is_torchs(self, "rotary") else forward
        return chosen(self, *inputs, **named)

    return _with_members(cls, {"forward": forward_by_choice, **members(*kinds)})


@functools.cache
def in_place_of_base(cls: type) -> type:
    """A class of cubind's as replace() gives it to modules of its base."""
    return _with_members(cls, {}, cls.__base__)


def _with_members(cls: type, given: dict[str, Any], original: type | None = None) -> type:
    # A pickled module comes back as what it was: a process that loads it need not have cubind.
    def reduce(self: Any, _: Any) -> tuple[Any, ...]:
        # All objects have it from Python 3.11 on. A parametrized module's raises.
        found = self.__getstate__() if hasattr(self, "__getstate__") else self.__dict__
        state = {name: value for name, value in found.items() if name != IN_GRAPH}
        return copyreg._reconstructor, (original or cls, object, None), state  # type: ignore[attr-defined]

    def deepcopy(self: Any, memo: dict[int, Any]) -> Any:
        cls = type(self)  # which may be one that torch has made of this one
        memo[id(self)] = twin = cls.__new__(cls)
        twin.__setstate__(copy.deepcopy(self.__dict__, memo))
        return twin

    own = {
        **given,
        "__reduce_ex__": reduce,
        "__deepcopy__": deepcopy,
        "__module__": cls.__module__,
        _MARK: True,
    }
    return type(cls.__name__, (cls,), own)
