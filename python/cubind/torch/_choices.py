"""What modules are in a compiled graph: the compiler's code, or cubind's operators where that is chosen.

A module has a kind, an attention layer two: its class names them in _kinds, the module itself has those that
are cubind's in _in_graph, where torch.compile guards on them.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import torch
from torch.compiler import is_compiling

from .. import _torch_private as private

IN_GRAPH = "_in_graph"
CHUNKED = "_has_chunked_loss"  # of a model's class


def members(*kinds: str) -> dict[str, Any]:
    """Of a class of modules of these kinds."""
    return {"_kinds": kinds, IN_GRAPH: ()}


def is_torchs(module: Any, kind: str) -> bool:
    """Whether a graph is being made in which the module is not cubind's. An exported one may be run without
    cubind."""
    return is_compiling() and (kind not in module._in_graph or private.is_exporting())


def kinds_of(module: torch.nn.Module) -> tuple[str, ...]:
    """Empty: it is not replaced."""
    return getattr(type(module), "_kinds", ())


def choose(model: torch.nn.Module, kinds: Collection[str]) -> None:
    """From now on modules of these kinds are cubind's in graphs, all others of the model are not."""
    for module in model.modules():
        if own := kinds_of(module):
            chosen = tuple(kind for kind in own if kind in kinds)
            if chosen != getattr(module, IN_GRAPH):
                setattr(module, IN_GRAPH, chosen)


def forget(module: torch.nn.Module) -> None:
    """Of a module that gets its class back."""
    module.__dict__.pop(IN_GRAPH, None)


def of_layers(name: str) -> str:
    """The name of a module, the same for all layers."""
    return re.sub(r"(?<![^.])\d+(?![^.])", "*", name)
