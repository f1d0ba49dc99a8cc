"""Embeddings in compiled graphs: cubind::embedding, whose gradient is torch's kernel. The compiler makes one
in float32, of the whole table, and converts it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .._torch_access import PLAIN
from ._choices import is_torchs, members
from ._dispatch import Dispatched

_LARGE = 1 << 24  # elements of a table for which it pays


def _formula(weight: Tensor, ids: Tensor, rows: int, padding: int) -> Tensor:
    return functional.embedding(ids, weight)


def _backward_formula(dy: Tensor, ids: Tensor, rows: int, padding: int) -> Tensor:
    return torch.ops.aten.embedding_dense_backward(dy.contiguous(), ids, rows, padding, False)


_backward_operator = Dispatched(
    "embedding_backward(Tensor dy, Tensor ids, int rows, int padding) -> Tensor",
    (),
    _backward_formula,
    cuda=_backward_formula,
    fake=lambda dy, ids, rows, padding: dy.new_empty((rows, dy.shape[-1])),
)
_operator = Dispatched(
    "embedding(Tensor weight, Tensor ids, int rows, int padding) -> Tensor",
    (),
    _formula,
    cuda=_formula,
    fake=lambda weight, ids, rows, padding: weight.new_empty((*ids.shape, weight.shape[-1])),
)
_operator.differentiate((1,), _backward_operator)


# The compiler's where nothing is gained.
def _forward(self: Any, input: Tensor) -> Tensor:
    if not torch.compiler.is_compiling() or is_torchs(self, "embedding") or type(self.weight) not in PLAIN:
        return torch.nn.Embedding.forward(self, input)
    padding = -1 if self.padding_idx is None else self.padding_idx
    return _operator(self.weight, input, self.weight.shape[0], padding)


EMBEDDING = {"forward": _forward, **members("embedding")}


def is_large(module: torch.nn.Module) -> bool:
    """Whether it is an embedding with a table for which it pays."""
    return (
        type(module) is torch.nn.Embedding
        and module.weight.numel() >= _LARGE
        and module.weight.element_size() < 4
        and module.max_norm is None
        and not module.scale_grad_by_freq
        and not module.sparse
    )
