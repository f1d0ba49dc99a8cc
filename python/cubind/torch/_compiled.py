"""Compiled graphs: which kinds of a model's modules are cubind's operators in them, by a rule that is not
slower, or by the measured step of the compiled model."""

from __future__ import annotations

import collections
import dataclasses
import weakref
from collections.abc import Iterable

import torch

from ..errors import CubindError
from ._choices import CHUNKED, choose, kinds_of, of_layers
from ._variants import Need, settings

# In the order in which they are measured, with their kernels.
KINDS: dict[str, tuple[str, ...]] = {
    "attention": ("flash_attention_forward", "flash_attention_backward"),
    "loss": ("cross_entropy_forward", "cross_entropy_backward"),
    "experts": ("grouped_mm",),
    "embedding": (),
    "rotary": ("rotary",),
    "activation": ("activation_forward", "activation_backward"),
    "norm": ("rmsnorm_forward", "rmsnorm_backward", "layernorm_forward", "layernorm_backward"),
}
_BY_RULE = {
    "attention": "its kernels are loaded",
    "loss": "its kernels are loaded",
    "experts": "its kernels are loaded",
    "embedding": "its gradient needs no table in float32",
    "rotary": "its kernels are loaded",
}
_VECTOR = 8  # elements of a row that are read at once


@dataclasses.dataclass(frozen=True)
class Choice:
    """Whether modules of a kind are cubind's in graphs, and why."""

    is_ours: bool
    why: str


_chosen: weakref.WeakKeyDictionary[torch.nn.Module, dict[str, Choice]] = weakref.WeakKeyDictionary()


def by_rule(model: torch.nn.Module, needs: Iterable[Need]) -> dict[str, Choice]:
    """For each kind of the model's modules. needs: the kernels that it calls."""
    needs = list(needs)
    present = {kind for module in model.modules() for kind in kinds_of(module)}
    found = {kind: _by_rule(kind, model, needs) for kind in KINDS if kind in present}
    if getattr(model, CHUNKED, False):
        found["loss"] = Choice(True, "chunked_loss was asked for")
    return found


def _by_rule(kind: str, model: torch.nn.Module, needs: list[Need]) -> Choice:
    if fault := missing(kind, needs):
        return Choice(False, fault)
    if kind not in _BY_RULE:
        return Choice(False, "the compiler fuses it with its neighbours")
    if kind == "loss":
        classes = {need.dims[1] for need in needs if need.operator.name in KINDS[kind]}
        if any(size % _VECTOR for size in classes):
            return Choice(False, f"the compiler pads its {min(classes)} classes")
        if getattr(getattr(model, "config", None), "final_logit_softcapping", None):
            return Choice(False, "the compiler caps the logits in the same pass")
    if kind == "rotary" and any(hasattr(one, "q_norm") for one in model.modules()):
        return Choice(False, "the compiler fuses it with the norms of queries and keys")
    return Choice(True, _BY_RULE[kind])


def missing(kind: str, needs: list[Need]) -> str:
    """Why modules of the kind cannot be cubind's; "" if they can."""
    own = [need for need in needs if need.operator.name in KINDS[kind]]
    if KINDS[kind] and not own:
        return "the run called no kernel of it"
    for need in own:
        if not _is_loaded(need):
            return f"{need.operator.name} is not loaded, or slower than torch's"
    return ""


def _is_loaded(need: Need) -> bool:
    operator, key, dims = need
    try:
        return operator.knows(key) or (settings.raises and operator.available(key, dims))
    except CubindError:
        return False


def use(model: torch.nn.Module, choices: dict[str, Choice]) -> None:
    """From the next call of a compiled model on: it compiles once more."""
    _chosen[model] = choices
    choose(model, {kind for kind, choice in choices.items() if choice.is_ours})


def lines() -> list[str]:
    """For each module that may be in a graph whose code it has there, and why; one line for all layers."""
    return [line for model, choices in _chosen.items() for line in _lines(model, choices)]


def _lines(model: torch.nn.Module, choices: dict[str, Choice]) -> list[str]:
    found: collections.Counter[str] = collections.Counter()
    for name, module in model.named_modules():
        for kind in [kind for kind in kinds_of(module) if kind in choices]:
            one = choices[kind]
            whose = "cubind's" if one.is_ours else "the compiler's"
            found[f"compiled {of_layers(name) or type(module).__name__}: {kind} is {whose}: {one.why}"] += 1
    return [f"{text} ({count} modules)" if count > 1 else text for text, count in found.items()]
