"""Cross-entropy of a linear layer's result, which is never whole in memory: cubind::linear_cross_entropy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .. import _torch_private as private
from .._switch import IS_OFF
from .._torch_access import PLAIN
from . import _cross_entropy as rows
from ._dispatch import Dispatched, Gradients, no_derivative
from ._operator import Operator
from ._tensors import Three, Two, contiguous_like, statistics

_LOGITS_BYTES = 1 << 28  # of the rows that are taken at once
_call = Operator("cross_entropy", ("N", "D")).call(
    {"x": "N D", "target": "N i64", "scale": "1 f32"}, {"loss": "N f32", "dx": "N D in:0"}, {"ignored": -100}
)

# (logits, targets, factor of the gradient, ignored) -> (losses, gradient of the logits)
_Judge = Callable[[Tensor, Tensor, Tensor, int], Two]


def _judge(logits: Tensor, target: Tensor, scale: Tensor, ignored: int) -> Two:
    loss, lse = rows.formula(logits, target, ignored)
    return loss, rows.backward_formula(scale.expand(loss.shape), logits, target, lse, ignored)


def judge_cuda(logits: Tensor, target: Tensor, scale: Tensor, ignored: int) -> Two:
    """The losses, and their gradient times the scale, which takes the memory of the logits."""
    return _call.run(logits, target, scale, ignored) or _judge(logits, target, scale, ignored)


def _rows_at_once(weight: Tensor) -> int:
    fitting = max(1, _LOGITS_BYTES // max(1, weight.shape[0] * weight.element_size()))
    return 1 << (fitting.bit_length() - 1)


def _computed(
    judge: _Judge,
    losses_of: Callable[[Tensor, Tensor, int], Two],
    hidden: Tensor,
    weight: Tensor,
    target: Tensor,
    scale: Tensor,
    ignored: int,
    of_hidden: bool,
    of_weight: bool,
) -> Three:
    losses, target = statistics(hidden), target.contiguous()
    dh = contiguous_like(hidden) if of_hidden else hidden.new_empty(0)
    dw = torch.zeros_like(weight, memory_format=torch.contiguous_format) if of_weight else weight.new_empty(0)
    step = _rows_at_once(weight)
    for first in range(0, hidden.shape[0], step):
        part = slice(first, first + step)
        logits = torch.mm(hidden[part], weight.t())
        if not (of_hidden or of_weight):
            losses[part] = losses_of(logits, target[part], ignored)[0]
            continue
        losses[part], slopes = judge(logits, target[part], scale, ignored)
        if of_hidden:
            torch.mm(slopes, weight, out=dh[part])
        if of_weight:
            dw.addmm_(slopes.t(), hidden[part])
    return losses.sum() * scale.squeeze(0), dh, dw


_formula = functools.partial(_computed, _judge, rows.formula)
_cuda = functools.partial(_computed, judge_cuda, rows.forward_cuda)


def _fake(
    hidden: Tensor,
    weight: Tensor,
    target: Tensor,
    scale: Tensor,
    ignored: int,
    of_hidden: bool,
    of_weight: bool,
) -> Three:
    return (
        statistics(hidden).sum(),
        contiguous_like(hidden) if of_hidden else hidden.new_empty(0),
        contiguous_like(weight) if of_weight else weight.new_empty(0),
    )


# The gradients are numbers by now: a pass over this one would take them for constants.
def _gradients(ctx: Any, dloss: Tensor) -> Gradients:
    if torch.is_grad_enabled():
        raise no_derivative("cubind::linear_cross_entropy has no second derivative")
    given = zip(ctx.saved_tensors, ctx.others[1:], ctx.needs_input_grad)
    dh, dw = (
        gradient * dloss.to(gradient.dtype) if there and needed else None for gradient, there, needed in given
    )
    return dh, dw, None, None


_operator = Dispatched(
    "linear_cross_entropy(Tensor hidden, Tensor weight, Tensor target, Tensor scale, int ignored, bool of_hidden,"
    " bool of_weight) -> (Tensor, Tensor, Tensor)",
    (),
    _formula,
    cuda=_cuda,
    fake=_fake,
)
_operator.differentiate((5, 6), _gradients)


def linear_cross_entropy(
    input: Tensor, weight: Tensor, target: Tensor, *, ignore_index: int = -100, reduction: str = "mean"
) -> Tensor:
    """cross_entropy(linear(input, weight), target, dtype=torch.float32) that never has all logits in memory:
    some rows at a time, the gradients in the same pass. Products are torch's, the loss is cubind's kernel.

    input: [..., K]; weight: [C, K], of input's type; target: input's shape without the last dim, int64.
        ignore_index: the target of rows that do not count. reduction: "mean" or "sum". The result is float32,
        or the wider type of input.

    linear() and cross_entropy() are used for DTensors and other subclasses, under autocast, transforms of
        torch.func, and for other types of input and target; for float16 too, since the gradients are made
        before the loss is scaled, and would be lost in its range.
    """
    if reduction not in ("mean", "sum"):
        raise ValueError(f'linear_cross_entropy: reduction is {reduction!r}, expected "mean" or "sum"')
    flat, targets = input.reshape(-1, input.shape[-1]), target.reshape(-1)
    if not _is_ours(flat, weight, targets):
        logits = functional.linear(flat, weight)
        wider = torch.promote_types(logits.dtype, torch.float32)
        return rows.cross_entropy(
            logits, targets, ignore_index=ignore_index, reduction=reduction, dtype=wider
        )
    accurate = torch.promote_types(input.dtype, torch.float32)
    scale = torch.ones(1, dtype=accurate, device=input.device)
    if reduction == "mean":
        scale = scale / (targets != ignore_index).sum()
    enabled = torch.is_grad_enabled()
    needs = enabled and flat.requires_grad, enabled and weight.requires_grad
    return _operator(flat, weight, targets, scale, ignore_index, *needs)[0]


def _is_ours(input: Tensor, weight: Tensor, target: Tensor) -> bool:
    plain = all(type(t) in PLAIN for t in (input, weight, target))
    kind = input.device.type
    return (
        plain
        and not IS_OFF
        and kind in ("cpu", "cuda")
        and not torch.is_autocast_enabled(kind)
        and (torch.compiler.is_compiling() or not private.is_transformed())
        and input.dtype == weight.dtype
        and input.is_floating_point()
        and input.dtype != torch.float16
        and target.dtype == torch.int64
        and weight.dim() == 2
        and target.shape == input.shape[:1]
    )
