"""RMSNorm of a sum, which is stored too: cubind::add_rms_norm and cubind::add_rms_norm_backward."""

from __future__ import annotations

from typing import Any

import torch
from torch.compiler import is_compiling, is_dynamo_compiling
from torch.nn import functional

from .. import _torch_private as private
from .._switch import IS_OFF
from ._dispatch import Dispatched, Gradients, applies, contiguous_like, is_direct, statistics, stream_of, wide
from ._operator import Operator, is_there
from ._rms_norm import backward_formula, backward_need, launch_backward, rms_norm
from ._variants import has_kernel

_forward = Operator(
    "rmsnorm_fused_forward",
    ("N", "D"),
    ("x", "residual", "w", "y", "sum", "rstd", "eps"),
    ("RESIDUAL", "RSTD"),
)
_INPUTS = ("N* D", "N* D", "D")
_call = _forward.call(_INPUTS, ("N* D", "N* D", "N* f32"), known=("D",), numbers=1, flags=(1, 1))
# Without gradients.
_bare_call = _forward.call(
    _INPUTS, ("N* D", "N* D"), known=("D",), numbers=1, flags=(1, 0), without=("rstd",)
)

Two = tuple[torch.Tensor, torch.Tensor]
Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def _formula(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> Three:
    total = (x + residual).contiguous()
    if private.rms_norm is not None and total.dtype == weight.dtype:
        y, scales = private.rms_norm(total, weight.shape, weight, eps)
        return y, total, scales.squeeze(-1)
    rstd = torch.rsqrt(wide(total).square().mean(-1) + eps)
    return functional.rms_norm(total, weight.shape, weight, eps), total, rstd


def _launch(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float, has_rstd: bool
) -> Three | None:
    if x.shape != residual.shape or not has_kernel(x, residual, weight):
        return None
    x, residual, weight = x.contiguous(), residual.contiguous(), weight.contiguous()
    y, total, rstd = torch.empty_like(x), torch.empty_like(x), statistics(x)
    features, device = weight.shape[0], x.get_device()
    key = (x.dtype, device, (1, int(has_rstd)), (features,))
    # 0: what a flag leaves out is not written
    arguments = (x, residual, weight, y, total, rstd if has_rstd else 0, eps)
    dims = (x.numel() // features, features)
    return (y, total, rstd) if _forward.launch(key, dims, stream_of(device), arguments) else None


def _forward_cuda(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> Three:
    outputs = _call.launch(x, residual, weight, eps)
    if outputs is None:
        outputs = _launch(x, residual, weight, eps, True)
    return outputs if isinstance(outputs, tuple) else _formula(x, residual, weight, eps)


def _bare_cuda(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> Two:
    outputs = _bare_call.launch(x, residual, weight, eps)
    if outputs is None:
        outputs = _launch(x, residual, weight, eps, False)
    y, total, *_ = outputs if isinstance(outputs, tuple) else _formula(x, residual, weight, eps)
    return y, total


# The sum goes to the norm and on to the next addition: its gradient is that of both.
def _backward_formula(
    dy: torch.Tensor, dsum: torch.Tensor, total: torch.Tensor, weight: torch.Tensor, rstd: torch.Tensor
) -> Two:
    dx, dw = backward_formula(dy, total, weight, rstd)
    return (dx + dsum).contiguous(), dw


def _backward_cuda(
    dy: torch.Tensor, dsum: torch.Tensor, total: torch.Tensor, weight: torch.Tensor, rstd: torch.Tensor
) -> Two:
    gradients = launch_backward(dy, total, weight, rstd)
    if gradients is None or dsum.dtype != total.dtype:
        return _backward_formula(dy, dsum, total, weight, rstd)
    dx, dw = gradients
    return dx.add_(dsum), dw


def _fake(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> Three:
    return contiguous_like(x), contiguous_like(x), statistics(x)


def _backward_fake(
    dy: torch.Tensor, dsum: torch.Tensor, total: torch.Tensor, weight: torch.Tensor, rstd: torch.Tensor
) -> Two:
    return contiguous_like(total), contiguous_like(weight)


def _gradients(ctx: Any, dy: torch.Tensor, dsum: torch.Tensor) -> Gradients:
    gradient, dw = _backward_operator(dy, dsum, *ctx.saved_tensors)
    given = (gradient, gradient, dw)
    return tuple(g if needed else None for g, needed in zip(given, ctx.needs_input_grad))


_operator = Dispatched(
    "add_rms_norm(Tensor x, Tensor residual, Tensor weight, float eps) -> (Tensor, Tensor, Tensor)",
    _forward_cuda,
    _formula,
    _fake,
    tensors=3,
)
_backward_operator = Dispatched(
    "add_rms_norm_backward(Tensor dy, Tensor dsum, Tensor sum, Tensor weight, Tensor rstd) -> (Tensor, Tensor)",
    _backward_cuda,
    _backward_formula,
    _backward_fake,
    tensors=5,
)
_operator.differentiate((4, 2, 5), _gradients, outputs=2)


def add_rms_norm(
    input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """RMSNorm of input + residual, and that sum, the next residual of a transformer, as (normalized, sum); by
    cubind's kernels on a GPU.

    input: [..., D]; bf16, f16 or f32. residual: of input's shape and type. weight: [D], of input's type. eps:
        None is torch.finfo(input.dtype).eps.

    input + residual and rms_norm() of it are used as rms_norm() says. DTensors are accepted.
    """
    tensors = (input, residual, weight)
    if (
        _may_be_there(tensors, eps)
        and input.shape == residual.shape
        and input.dtype == residual.dtype
        and input.shape[-1:] == weight.shape
    ):
        used_eps = torch.finfo(input.dtype).eps if eps is None else eps
        direct = not is_dynamo_compiling() and is_direct(*tensors)
        needs = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        if (direct or applies(*tensors)) and (is_compiling() or _is_there(*tensors, needs or not direct)):
            if direct and not needs:
                return _bare_cuda(*tensors, used_eps)
            results = _operator.direct(True, *tensors, used_eps) if direct else _operator(*tensors, used_eps)
            return results[0], results[1]
    total = input + residual
    return rms_norm(total, weight.shape, weight, eps), total


# False: it is known that there is no kernel.
def _may_be_there(tensors: tuple[torch.Tensor, ...], eps: float | None) -> bool:
    if IS_OFF or is_dynamo_compiling():
        return not IS_OFF
    needs = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    return not (_call if needs else _bare_call).is_missing(*tensors, 0.0 if eps is None else eps)


# has_rstd: by the kernel that stores the rows' scales too.
def _is_there(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, has_rstd: bool) -> bool:
    if not has_kernel(x, residual, weight):
        return False
    features = weight.shape[0]
    key = (x.dtype, x.get_device(), (1, int(has_rstd)), (features,))
    dims = (x.numel() // features, features)
    return is_there(has_rstd, (_forward, key, dims), backward_need(x, features))
