"""LayerNorm: cubind::layer_norm and cubind::layer_norm_backward."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.compiler import is_compiling, is_dynamo_compiling
from torch.nn import functional

from .. import _torch_private as private
from .._switch import IS_OFF
from ._dispatch import (
    HALF,
    Backward,
    Dispatched,
    Gradients,
    applies,
    contiguous_like,
    is_direct,
    statistics,
    stream_of,
    wide,
)
from ._dtensor import are_distributed, run_locally
from ._operator import Need, Operator, is_there
from ._variants import has_kernel

_forward = Operator("layernorm_forward", ("N", "D"), ("x", "w", "b", "y", "mean", "rstd", "eps"))
_backward = Operator("layernorm_backward", ("N", "D"), ("x", "w", "dy", "mean", "rstd", "dx", "dw", "db"))
_ROW = "N* f32"  # the statistics
_call = _forward.call(("N* D", "D", "D"), ("N* D", _ROW, _ROW), known=("D",), numbers=1)
_backward_call = _backward.call(("N* D", "D", "N* D", _ROW, _ROW), ("N* D", "D", "D"), known=("D",))

Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


# On the CPU torch keeps the statistics of narrow types in the narrow type.
def _has_statistics(x: torch.Tensor) -> bool:
    return x.is_cuda or x.dtype not in HALF


def _formula(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> Three:
    if private.layer_norm is not None and _has_statistics(x) and x.dtype == weight.dtype == bias.dtype:
        y, mean, rstd = private.layer_norm(x.contiguous(), weight.shape, weight, bias, eps)
        return y, mean.squeeze(-1), rstd.squeeze(-1)
    y = functional.layer_norm(x, weight.shape, weight, bias, eps)
    mean = wide(x).mean(-1)
    variance = (wide(x) - mean.unsqueeze(-1)).square().mean(-1)
    return y.contiguous(), mean, torch.rsqrt(variance + eps)


def _backward_formula(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor
) -> Three:
    if private.layer_norm_backward is not None and _has_statistics(x) and x.dtype == weight.dtype == dy.dtype:
        given = (dy.contiguous(), x.contiguous(), weight.shape, mean.unsqueeze(-1), rstd.unsqueeze(-1))
        # The bias is not read.
        dx, dw, db = private.layer_norm_backward(*given, weight, weight, [True, True, True])
        return dx, dw, db
    grad, scale = wide(dy), rstd.unsqueeze(-1)
    normed, scaled = (wide(x) - mean.unsqueeze(-1)) * scale, grad * weight
    share = (scaled * normed).mean(-1, keepdim=True)
    dx = scale * (scaled - scaled.mean(-1, keepdim=True) - normed * share)
    rows = grad.reshape(-1, weight.numel())
    dw = (rows * normed.reshape(-1, weight.numel())).sum(0)
    return dx.to(x.dtype).contiguous(), dw.to(weight.dtype), rows.sum(0).to(weight.dtype)


def _forward_cuda(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> Three:
    outputs = _call.launch(x, weight, bias, eps)
    if outputs is not None and outputs is not NotImplemented:
        return outputs
    if outputs is None and has_kernel(x, weight, bias):
        x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
        y, mean, rstd = torch.empty_like(x), statistics(x), statistics(x)
        features, device = weight.shape[0], x.get_device()
        key, dims = (x.dtype, device, (), (features,)), (x.numel() // features, features)
        if _forward.launch(key, dims, stream_of(device), (x, weight, bias, y, mean, rstd, eps)):
            return y, mean, rstd
    return _formula(x, weight, bias, eps)


def _backward_cuda(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor
) -> Three:
    gradients = _backward_call.launch(x, weight, dy, mean, rstd)
    if gradients is not None and gradients is not NotImplemented:
        return gradients
    if gradients is None and has_kernel(x, weight, dy):
        dy, x, weight = dy.contiguous(), x.contiguous(), weight.contiguous()
        dx, dw, db = torch.empty_like(x), torch.empty_like(weight), torch.empty_like(weight)
        features, device = weight.shape[0], x.get_device()
        key, dims = (x.dtype, device, (), (features,)), (x.numel() // features, features)
        arguments = (x, weight, dy, mean.contiguous(), rstd.contiguous(), dx, dw, db)
        if _backward.launch(key, dims, stream_of(device), arguments):
            return dx, dw, db
    return _backward_formula(dy, x, weight, mean, rstd)


def backward_need(x: torch.Tensor, features: int) -> Need:
    """The kernel of the backward pass."""
    return _backward, (x.dtype, x.get_device(), (), (features,)), (x.numel() // features, features)


def _fake(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> Three:
    return contiguous_like(x), statistics(x), statistics(x)


def _backward_fake(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor
) -> Three:
    return contiguous_like(x), contiguous_like(weight), contiguous_like(weight)


def _gradients(ctx: Any, dy: torch.Tensor) -> Gradients:
    given = _backward_operator(dy, *ctx.saved_tensors)
    return tuple(g if needed else None for g, needed in zip(given, ctx.needs_input_grad))


_operator = Dispatched(
    "layer_norm(Tensor x, Tensor weight, Tensor bias, float eps) -> (Tensor, Tensor, Tensor)",
    _forward_cuda,
    _formula,
    _fake,
    tensors=3,
)
_backward_operator = Dispatched(
    "layer_norm_backward(Tensor dy, Tensor x, Tensor weight, Tensor mean, Tensor rstd) -> (Tensor, Tensor, Tensor)",
    _backward_cuda,
    _backward_formula,
    _backward_fake,
    tensors=5,
)
_operator.differentiate((0, 1, 4, 5), _gradients, (_call, Backward(_backward_call, (0, 1, -1, 2, 3))))


def layer_norm(
    input: torch.Tensor,
    normalized_shape: list[int] | tuple[int, ...] | torch.Size,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
) -> torch.Tensor:
    """torch.nn.functional.layer_norm, by cubind's kernels on a GPU.

    input: [..., D]; bf16, f16 or f32. normalized_shape: [D]. weight, bias: [D], of input's type. eps: added
        to the variance.

    Torch's own function is used as rms_norm() says, and without a weight or a bias. DTensors are accepted.
    """
    y: Any = NotImplemented if IS_OFF else None
    if y is None and not is_dynamo_compiling():
        y = _call.direct(normalized_shape, input, weight, bias, eps)
    if y is None:
        y = _longer(input, normalized_shape, weight, bias, eps)
    return y if y is not NotImplemented else functional.layer_norm(input, normalized_shape, weight, bias, eps)


# NotImplemented: torch's own function takes its place.
def _longer(
    input: torch.Tensor,
    normalized_shape: list[int] | tuple[int, ...] | torch.Size,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    eps: float,
) -> Any:
    if (
        weight is None
        or bias is None
        or len(normalized_shape) != 1
        or not weight.shape == bias.shape == tuple(normalized_shape)
        or input.shape[-1:] != weight.shape
    ):
        return NotImplemented
    direct = is_direct(input, weight, bias)
    if not direct and not applies(input, weight, bias):
        if not are_distributed(input, weight, bias):
            return NotImplemented
        return run_locally(
            "layer_norm",
            lambda x, w, b: layer_norm(x, w.shape, w, b, eps),
            {"input": input},
            1,
            {"weight": weight, "bias": bias},
        )
    needs = input.requires_grad or weight.requires_grad or bias.requires_grad
    if not (is_compiling() or _is_there(input, weight, bias, needs)):
        return NotImplemented
    run = functools.partial(_operator.direct, needs) if direct else _operator
    return run(input, weight, bias, eps)[0]


def _is_there(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, needs_gradients: bool) -> bool:
    if not has_kernel(x, weight, bias):
        return False
    features = weight.shape[0]
    key, dims = (x.dtype, x.get_device(), (), (features,)), (x.numel() // features, features)
    return is_there(needs_gradients, (_forward, key, dims), backward_need(x, features))


class LayerNorm(torch.nn.LayerNorm):
    """torch.nn.LayerNorm by layer_norm(): the same arguments, parameters and state dict. In a compiled graph
    it is torch's, which the compiler fuses with its neighbours."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """input: [..., D]."""
        if is_compiling():
            return super().forward(input)
        return layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)
