"""Cross-entropy of rows: cubind::cross_entropy and cubind::cross_entropy_backward."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ._dispatch import Dispatched
from ._operator import Operator
from ._tensors import Two, wide

_DIMS = ("N", "D")
_ROW, _TARGET = "N* f32", "N* i64"
_IGNORED = {"ignored": -100}
_call = Operator("cross_entropy_forward", _DIMS).call(
    {"x": "N* D", "target": _TARGET}, {"loss": _ROW, "lse": _ROW}, _IGNORED
)
_backward_call = Operator("cross_entropy_backward", _DIMS).call(
    {"dloss": _ROW, "x": "N* D", "target": _TARGET, "lse": _ROW}, {"dx": "N* D"}, _IGNORED
)


# Which rows count, and their targets; 0 for the others.
def _chosen(target: Tensor, ignored: int) -> Two:
    kept = target != ignored
    return kept, target.masked_fill(~kept, 0).unsqueeze(-1)


def formula(x: Tensor, target: Tensor, ignored: int) -> Two:
    """(loss, logsumexp) of each row by torch's functions; 0 for those that are ignored."""
    kept, chosen = _chosen(target, ignored)
    lse = wide(x).logsumexp(-1).masked_fill(~kept, 0)
    return lse - wide(x.gather(-1, chosen).squeeze(-1)).masked_fill(~kept, 0), lse


def backward_formula(dloss: Tensor, x: Tensor, target: Tensor, lse: Tensor, ignored: int) -> Tensor:
    """The gradient of x by torch's functions."""
    kept, chosen = _chosen(target, ignored)
    slopes = (wide(x) - lse.unsqueeze(-1)).exp()
    slopes.scatter_add_(-1, chosen, slopes.new_full(chosen.shape, -1.0))
    slopes.mul_(dloss.unsqueeze(-1)).masked_fill_(~kept.unsqueeze(-1), 0)
    return slopes.to(x.dtype).contiguous()


_backward_operator = Dispatched(
    "cross_entropy_backward(Tensor dloss, Tensor x, Tensor target, Tensor lse, int ignored) -> Tensor",
    (_backward_call,),
    backward_formula,
)
_operator = Dispatched(
    "cross_entropy(Tensor x, Tensor target, int ignored) -> (Tensor, Tensor)", (_call,), formula
)
_operator.differentiate((0, 1, 3), _backward_operator)


def forward_cuda(x: Tensor, target: Tensor, ignored: int) -> Two:
    """formula(), by the kernel if it is there."""
    return _call.run(x, target, ignored) or formula(x, target, ignored)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """torch.nn.functional.cross_entropy, by cubind's kernels on a GPU. Softmax is not stored: the backward
    pass computes it from the input.

    input: [N, C]; bf16, f16 or f32. target: [N], int64. reduction: "mean", "sum" or "none". dtype: of the
        result, None is input's; the loss is computed in float32, so torch.float32 gives that of input.float()
        without this copy.

    A target that is neither a class nor ignore_index gives NaN. Torch's own function is used as rms_norm()
    says, for other shapes and types, with weight or label_smoothing, and for DTensors.
    """
    losses: Any = NotImplemented
    if (
        weight is None
        and label_smoothing == 0
        and input.dim() == 2
        and reduction in ("mean", "sum", "none")
        and dtype in (None, torch.float32, input.dtype)
    ):
        losses = _call(None, input, target, ignore_index)
    if losses is NotImplemented:
        return functional.cross_entropy(
            input if dtype is None else input.to(dtype),
            target,
            weight,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
        )
    if reduction != "none":
        losses = losses.sum()
    if reduction == "mean":
        losses = losses / (target != ignore_index).sum()
    return losses.to(input.dtype if dtype is None else dtype)
