"""Cross-entropy of rows: cubind::cross_entropy and cubind::cross_entropy_backward."""

from __future__ import annotations

from typing import Any

import torch
from torch.compiler import is_compiling
from torch.nn import functional

from .._switch import IS_OFF
from ._dispatch import Dispatched, Gradients, applies, contiguous_like, is_direct, statistics, stream_of, wide
from ._operator import Operator, is_there
from ._variants import has_kernel

_forward = Operator("cross_entropy_forward", ("N", "D"), ("x", "target", "loss", "lse", "ignored"))
_backward = Operator("cross_entropy_backward", ("N", "D"), ("x", "target", "lse", "dloss", "dx", "ignored"))

Two = tuple[torch.Tensor, torch.Tensor]


# Which rows count, and their targets; 0 for the others.
def _chosen(target: torch.Tensor, ignored: int) -> Two:
    kept = target != ignored
    return kept, target.masked_fill(~kept, 0).unsqueeze(-1)


def formula(x: torch.Tensor, target: torch.Tensor, ignored: int) -> Two:
    """(loss, logsumexp) of each row by torch's functions; 0 for those that are ignored."""
    kept, chosen = _chosen(target, ignored)
    lse = wide(x).logsumexp(-1).masked_fill(~kept, 0)
    return lse - wide(x.gather(-1, chosen).squeeze(-1)).masked_fill(~kept, 0), lse


def backward_formula(
    dloss: torch.Tensor, x: torch.Tensor, target: torch.Tensor, lse: torch.Tensor, ignored: int
) -> torch.Tensor:
    """The gradient of x by torch's functions."""
    kept, chosen = _chosen(target, ignored)
    slopes = (wide(x) - lse.unsqueeze(-1)).exp()
    slopes.scatter_add_(-1, chosen, slopes.new_full(chosen.shape, -1.0))
    slopes.mul_(dloss.unsqueeze(-1)).masked_fill_(~kept.unsqueeze(-1), 0)
    return slopes.to(x.dtype).contiguous()


def key_of(x: torch.Tensor) -> tuple[Any, tuple[int, int]]:
    """(key, dims) of a kernel on these rows."""
    classes = x.shape[-1]
    return (x.dtype, x.get_device(), (), (classes,)), (x.numel() // classes, classes)


def forward_cuda(x: torch.Tensor, target: torch.Tensor, ignored: int) -> Two:
    """formula(), by the kernel if it is there."""
    if has_kernel(x) and target.get_device() == x.get_device():
        x, target = x.contiguous(), target.contiguous()
        loss, lse = statistics(x), statistics(x)
        key, dims = key_of(x)
        if _forward.launch(key, dims, stream_of(key[1]), (x, target, loss, lse, ignored)):
            return loss, lse
    return formula(x, target, ignored)


def _backward_cuda(
    dloss: torch.Tensor, x: torch.Tensor, target: torch.Tensor, lse: torch.Tensor, ignored: int
) -> torch.Tensor:
    if has_kernel(x) and target.get_device() == x.get_device():
        x, target, dloss = x.contiguous(), target.contiguous(), dloss.contiguous()
        dx = torch.empty_like(x)
        key, dims = key_of(x)
        given = (x, target, lse.contiguous(), dloss, dx, ignored)
        if _backward.launch(key, dims, stream_of(key[1]), given):
            return dx
    return backward_formula(dloss, x, target, lse, ignored)


def _gradients(ctx: Any, dloss: torch.Tensor) -> Gradients:
    return _backward_operator(dloss, *ctx.saved_tensors, *ctx.others), None


_operator = Dispatched(
    "cross_entropy(Tensor x, Tensor target, int ignored) -> (Tensor, Tensor)",
    forward_cuda,
    formula,
    lambda x, target, _: (statistics(x), statistics(x)),
    tensors=2,
)
_backward_operator = Dispatched(
    "cross_entropy_backward(Tensor dloss, Tensor x, Tensor target, Tensor lse, int ignored) -> Tensor",
    _backward_cuda,
    backward_formula,
    lambda dloss, x, target, lse, _: contiguous_like(x),
    tensors=4,
)
_operator.differentiate((0, 1, 3), _gradients)


def cross_entropy(
    input: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    dtype: torch.dtype | None = None,
) -> torch.Tensor:
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
        and reduction in ("mean", "sum", "none")
        and dtype in (None, torch.float32, input.dtype)
    ):
        losses = _losses(input, target, ignore_index)
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
    result: torch.Tensor = losses.to(input.dtype if dtype is None else dtype)
    return result


# Of each row. NotImplemented: torch's own function takes their place.
def _losses(input: torch.Tensor, target: torch.Tensor, ignored: int) -> Any:
    if IS_OFF or input.dim() != 2 or target.shape != input.shape[:1] or target.dtype != torch.int64:
        return NotImplemented
    direct, needs = is_direct(input, target), input.requires_grad
    if (direct or applies(input, target)) and (is_compiling() or _is_there(input, needs)):
        given = (input, target, ignored)
        return (_operator.direct(needs, *given) if direct else _operator(*given))[0]
    return NotImplemented


def _is_there(x: torch.Tensor, needs_gradients: bool) -> bool:
    if not has_kernel(x):
        return False
    return is_there(needs_gradients, (_forward, *key_of(x)), (_backward, *key_of(x)))
