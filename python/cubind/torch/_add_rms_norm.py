"""RMSNorm of a sum, which is stored too: cubind::add_rms_norm and cubind::add_rms_norm_backward."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .. import _torch_private as private
from ._dispatch import Dispatched, Gradients
from ._operator import Operator
from ._rms_norm import backward_call, backward_formula, rms_norm
from ._tensors import Three, Two, contiguous_like, wide

_forward = Operator("rmsnorm_fused_forward", ("N", "D"), ("RESIDUAL", "RSTD"))
_INPUTS = {"x": "N* D", "residual": "N* D", "w": "D"}
_OUTPUTS = {"y": "N* D", "sum": "N* D"}
_EPS = {"eps": 1e-6}
_call = _forward.call(_INPUTS, {**_OUTPUTS, "rstd": "N* f32"}, _EPS, flags=(1, 1), returned=2)
# Without gradients.
_bare_call = _forward.call(_INPUTS, _OUTPUTS, _EPS, flags=(1, 0), returned=2)


def _formula(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> Three:
    total = (x + residual).contiguous()
    if private.rms_norm is not None and total.dtype == weight.dtype:
        y, scales = private.rms_norm(total, weight.shape, weight, eps)
        return y, total, scales.squeeze(-1)
    rstd = torch.rsqrt(wide(total).square().mean(-1) + eps)
    return functional.rms_norm(total, weight.shape, weight, eps), total, rstd


# The sum goes to the norm and on to the next addition: its gradient is that of both.
def _backward_formula(dy: Tensor, dsum: Tensor, total: Tensor, weight: Tensor, rstd: Tensor) -> Two:
    dx, dw = backward_formula(dy, total, weight, rstd)
    return (dx + dsum).contiguous(), dw


def _backward_cuda(dy: Tensor, dsum: Tensor, total: Tensor, weight: Tensor, rstd: Tensor) -> Two:
    gradients = backward_call.run(total, weight, dy, rstd)
    if gradients is None or dsum.dtype != total.dtype:
        return _backward_formula(dy, dsum, total, weight, rstd)
    dx, dw = gradients
    return dx.add_(dsum), dw


def _gradients(ctx: Any, dy: Tensor, dsum: Tensor) -> Gradients:
    gradient, dw = _backward_operator(dy, dsum, *ctx.saved_tensors)
    given = (gradient, gradient, dw)
    return tuple(g if needed else None for g, needed in zip(given, ctx.needs_input_grad))


_backward_operator = Dispatched(
    "add_rms_norm_backward(Tensor dy, Tensor dsum, Tensor sum, Tensor weight, Tensor rstd) -> (Tensor, Tensor)",
    (),
    _backward_formula,
    cuda=_backward_cuda,
    fake=lambda dy, dsum, total, weight, rstd: (contiguous_like(total), contiguous_like(weight)),
)
_operator = Dispatched(
    "add_rms_norm(Tensor x, Tensor residual, Tensor weight, float eps) -> (Tensor, Tensor, Tensor)",
    (_call,),
    _formula,
)
_operator.differentiate((4, 2, 5), _gradients, outputs=2, ahead=lambda need, _: [backward_call.at(need)])
_bare_call.op = _operator


def add_rms_norm(
    input: Tensor, residual: Tensor, weight: Tensor, eps: float | None = None
) -> tuple[Tensor, Tensor]:
    """RMSNorm of input + residual, and that sum, the next residual of a transformer, as (normalized, sum); by
    cubind's kernels on a GPU.

    input: [..., D]; bf16, f16 or f32. residual: of input's shape and type. weight: [D], of input's type. eps:
        None is torch.finfo(input.dtype).eps.

    input + residual and rms_norm() of it are used as rms_norm() says. DTensors are accepted.
    """
    if input.shape == residual.shape:
        needs = torch.is_grad_enabled() and (
            input.requires_grad or residual.requires_grad or weight.requires_grad
        )
        used_eps = torch.finfo(input.dtype).eps if eps is None else eps
        both = (_call if needs else _bare_call)(None, input, residual, weight, used_eps)
        if both is not NotImplemented:
            return both
    total = input + residual
    return rms_norm(total, weight.shape, weight, eps), total
