"""Swaps the modules of a model for cubind's, and back."""

from __future__ import annotations

import dataclasses

import torch

from ._rms_norm import RMSNorm, rms_norm

# Modules of `transformers` that compute weight * x / sqrt(mean(x^2) + variance_epsilon).
_TRANSFORMERS = (
    "LlamaRMSNorm",
    "MistralRMSNorm",
    "MixtralRMSNorm",
    "Phi3RMSNorm",
    "Qwen2RMSNorm",
    "Qwen3RMSNorm",
)


@dataclasses.dataclass
class Replacement:
    """What replace() did. replaced: (name of the module, its class). kept: (name, class, why it stays)."""

    replaced: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    kept: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)
    _modules: list[tuple[torch.nn.Module, type]] = dataclasses.field(default_factory=list, repr=False)

    def undo(self) -> None:
        """Gives every replaced module its class back."""
        for module, original in self._modules:
            module.__class__ = original
        self._modules.clear()

    def __str__(self) -> str:
        lines = [f"{name}: {cls} replaced" for name, cls in self.replaced]
        lines += [f"{name}: {cls} kept: {why}" for name, cls, why in self.kept]
        return "\n".join(lines) or "nothing to replace"


def replace(model: torch.nn.Module, *, dry_run: bool = False, verbose: bool = True) -> Replacement:
    """Replaces the model's RMSNorm modules (torch's, and those of `transformers` that compute the same) in place. Parameters,
    buffers, hooks and state dicts stay as they are: a module gets another class. dry_run: says what it would do. verbose:
    prints it. Replacement.undo() takes it back."""
    done = Replacement()
    for name, module in model.named_modules():
        original = type(module)
        new, why = _class_for(module)
        if new is None:
            if why:
                done.kept.append((name, original.__name__, why))
            continue
        done.replaced.append((name, original.__name__))
        if not dry_run:
            done._modules.append((module, original))
            module.__class__ = new
    if verbose:
        print(done)
    return done


def _class_for(module: torch.nn.Module) -> tuple[type | None, str]:
    cls = type(module)
    if cls is torch.nn.RMSNorm:
        if module.weight is None:
            return None, "it has no weight"
        return (RMSNorm, "") if len(module.normalized_shape) == 1 else (None, "it normalizes several dims")
    if cls.__name__ in _TRANSFORMERS and cls.__module__.startswith("transformers."):
        return type(
            cls.__name__, (cls,), {"forward": _transformers_forward, "__module__": cls.__module__}
        ), ""
    if cls is not RMSNorm and "RMSNorm" in cls.__name__:
        return None, "its formula is not known"
    return None, ""


def _transformers_forward(self: torch.nn.Module, hidden_states: torch.Tensor) -> torch.Tensor:
    return rms_norm(hidden_states, self.weight.shape, self.weight, self.variance_epsilon)
