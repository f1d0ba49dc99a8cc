"""Swaps the modules of a model for cubind's, and back."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable
from typing import Any, cast

import torch

from .._switch import IS_OFF, WHY_OFF
from ._called_products import products_forward
from ._choices import forget, of_layers
from ._layer_norm import LayerNorm
from ._linear import Linear
from ._operator import operators
from ._rms_norm import RMSNorm
from ._transformers import class_for, class_in_graphs, in_place_of_base, with_forward


@dataclasses.dataclass
class Replacement:
    """What replace() did. replaced: (name of the module, its class). kept: (name, class, why it stays).
    faster: the problems of this process for which torch's function is called since it is faster."""

    replaced: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    kept: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)
    faster: list[str] = dataclasses.field(default_factory=list)
    _modules: list[tuple[torch.nn.Module, type]] = dataclasses.field(default_factory=list, repr=False)
    _dry_run: bool = dataclasses.field(default=False, repr=False)

    def undo(self) -> None:
        """Gives every replaced module its class back."""
        for module, original in self._modules:
            module.__class__ = original
            forget(module)
        self._modules.clear()

    def __str__(self) -> str:
        verb = "would be replaced" if self._dry_run else "replaced"
        lines = _lines((name, f"{cls} {verb}") for name, cls in self.replaced)
        lines += _lines((name, f"{cls} kept: {why}") for name, cls, why in self.kept)
        return "\n".join([*lines, *self.faster]) or "nothing to replace"


def _lines(done: Iterable[tuple[str, str]]) -> list[str]:
    """One line for each module and what was done with it; one for all layers if it is the same."""
    alike: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    for name, what in done:
        alike[of_layers(name), what].append(name)
    return [
        f"{name or 'model'}: {what} ({len(names)} modules)"
        if len(names) > 1
        else f"{names[0] or 'model'}: {what}"
        for (name, what), names in alike.items()
    ]


def replace(
    model: torch.nn.Module,
    *,
    linear: bool = False,
    chunked_loss: bool = False,
    detached_logits: bool = False,
    dry_run: bool = False,
    verbose: bool = True,
) -> Replacement:
    """Replaces in place torch's RMSNorm and LayerNorm modules and what `transformers` has of the same: the
    RMSNorms, gated layers (SwiGLU, GEGLU), rotary embedding, causal loss and GELU by tanh of GPT-2, Llama,
    Qwen, Mistral and Gemma, the experts "grouped_mm" of all models, and the attention "sdpa": a call with a
    mask that is not plainly causal, or with dropout, stays transformers' own. In modules that call torch's
    grouped_mm, scaled_mm or scaled_grouped_mm these calls are cubind's, except in compiled graphs.
    Parameters, buffers, hooks and state dicts stay as they are: a module gets another class. With CUBIND=0
    nothing is replaced.

    linear: torch's Linear modules too. cuBLAS is as fast or faster at many sizes, so measure first.
    chunked_loss: Llama, Mistral and Qwen compute their loss by linear_cross_entropy() when they are trained
        with labels, which saves the memory of the logits: the output's `logits` and cache are None then.
        lm_head has to have a plain weight.
    detached_logits: in a compiled graph the output's `logits` of a causal language model that is given labels
        have no gradient, for which the graph would take zeros as large as the logits.
    dry_run: says what it would do. verbose: prints it. Replacement.undo() takes it back.

    A model of your own calls cubind.torch.scaled_dot_product_attention where it calls torch's.
    """
    done = Replacement(_dry_run=dry_run)
    for name, module in model.named_modules():
        original = type(module)
        new, why = _class_for(module, linear, chunked_loss, detached_logits)
        if why:
            done.kept.append((name, original.__name__, why))
        if new is not None and IS_OFF:
            done.kept.append((name, original.__name__, WHY_OFF))
        elif new is not None:
            done.replaced.append((name, original.__name__))
        elif not IS_OFF:  # what is not named: it is the same but in graphs
            new = class_in_graphs(module)
        if new is not None and not IS_OFF and not dry_run:
            done._modules.append((module, original))
            module.__class__ = new
    done.faster = [text for operator in operators() for text in operator.yielding()]
    if verbose:
        print(done)
    return done


def _class_for(
    module: torch.nn.Module, linear: bool, chunked_loss: bool, detached_logits: bool
) -> tuple[type | None, str]:
    cls = type(module)
    if cls is torch.nn.RMSNorm or cls is torch.nn.LayerNorm:
        return _norm_for(module)
    if cls is torch.nn.Linear:
        return (in_place_of_base(Linear) if linear else None), ""
    theirs, why = class_for(module, chunked_loss, detached_logits)
    if theirs is not None or why:
        return theirs, why
    if (products := products_forward(cls)) is not None:
        return with_forward(cls, products, "products"), ""
    if not issubclass(cls, RMSNorm) and "RMSNorm" in cls.__name__:
        return None, "its formula is not known"
    return None, ""


def _norm_for(module: torch.nn.Module) -> tuple[type | None, str]:
    if module.weight is None:
        return None, "it has no weight"
    if len(cast(Any, module.normalized_shape)) != 1:
        return None, "it normalizes several dims"
    if isinstance(module, torch.nn.RMSNorm):
        return in_place_of_base(RMSNorm), ""
    return (in_place_of_base(LayerNorm), "") if module.bias is not None else (None, "it has no bias")
