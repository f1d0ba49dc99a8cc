"""Weighted sums over the last dim: cubind::weighted_sum and cubind::weighted_sum_backward."""

from __future__ import annotations

from typing import Any

import torch
from torch.compiler import is_compiling, is_dynamo_compiling

from .._switch import IS_OFF
from ._dispatch import Backward, Dispatched, Gradients, applies, contiguous_like, is_direct, stream_of
from ._dtensor import are_distributed, run_locally
from ._operator import Operator, is_there
from ._variants import has_kernel

_forward = Operator("weighted_sum_forward", ("N", "D"), ("x", "w", "y"))
_backward = Operator("weighted_sum_backward", ("N", "D"), ("x", "w", "dy", "dx", "dw"))
_call = _forward.call(("N* D", "D"), ("N*",), known=("D",))
_backward_call = _backward.call(("N* D", "D", "N*"), ("N* D", "D"), known=("D",))

Two = tuple[torch.Tensor, torch.Tensor]


def _formula(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.matmul(x, weight)


def _backward_formula(dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> Two:
    dx = dy.unsqueeze(-1) * weight
    return dx.contiguous(), x.reshape(-1, weight.shape[0]).t().mv(dy.reshape(-1))


def _forward_cuda(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    y = _call.launch(x, weight)
    if y is not None and y is not NotImplemented:
        return y
    if y is None and has_kernel(x, weight):
        x, weight = x.contiguous(), weight.contiguous()
        y = x.new_empty(x.shape[:-1])
        features, device = weight.shape[0], x.get_device()
        key, dims = (x.dtype, device, (), (features,)), (x.numel() // features, features)
        if _forward.launch(key, dims, stream_of(device), (x, weight, y)):
            return y
    return _formula(x, weight)


def _backward_cuda(dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> Two:
    gradients = _backward_call.launch(x, weight, dy)
    if gradients is not None and gradients is not NotImplemented:
        return gradients
    if gradients is None and has_kernel(x, weight, dy):
        dy, x, weight = dy.contiguous(), x.contiguous(), weight.contiguous()
        dx, dw = torch.empty_like(x), torch.empty_like(weight)
        features, device = weight.shape[0], x.get_device()
        key, dims = (x.dtype, device, (), (features,)), (x.numel() // features, features)
        if _backward.launch(key, dims, stream_of(device), (x, weight, dy, dx, dw)):
            return dx, dw
    return _backward_formula(dy, x, weight)


def _fake(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x.new_empty(x.shape[:-1])


def _backward_fake(dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> Two:
    return contiguous_like(x), contiguous_like(weight)


def _gradients(ctx: Any, dy: torch.Tensor) -> Gradients:
    dx, dw = _backward_operator(dy, *ctx.saved_tensors)
    return dx if ctx.needs_input_grad[0] else None, dw if ctx.needs_input_grad[1] else None


_operator = Dispatched(
    "weighted_sum(Tensor x, Tensor weight) -> Tensor", _forward_cuda, _formula, _fake, tensors=2
)
_operator.differentiate((0, 1), _gradients, (_call, Backward(_backward_call, (0, 1, -1))))
_backward_operator = Dispatched(
    "weighted_sum_backward(Tensor dy, Tensor x, Tensor weight) -> (Tensor, Tensor)",
    _backward_cuda,
    _backward_formula,
    _backward_fake,
    tensors=3,
)
_backward_operator.differentiate_by_formula()


def weighted_sum(input: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """torch.matmul(input, weight): the sum over the last dim of input times weight, by cubind's kernels on a
    GPU.

    input: [..., D]; bf16, f16 or f32. weight: [D], of input's type. The result: [...].

    torch.matmul is used as rms_norm() says. DTensors are accepted.
    """
    y: Any = NotImplemented if IS_OFF else None
    if y is None and not is_dynamo_compiling():
        y = _call.direct(None, input, weight)
    if y is None:
        y = _longer(input, weight)
    return y if y is not NotImplemented else torch.matmul(input, weight)


# NotImplemented: torch's own function takes its place.
def _longer(input: torch.Tensor, weight: torch.Tensor) -> Any:
    if weight.dim() != 1 or input.shape[-1:] != weight.shape:
        return NotImplemented
    direct, needs = is_direct(input, weight), input.requires_grad or weight.requires_grad
    if (direct or applies(input, weight)) and (is_compiling() or _is_there(input, weight, needs)):
        return _operator.direct(needs, input, weight) if direct else _operator(input, weight)
    if not are_distributed(input, weight):
        return NotImplemented
    column = run_locally("weighted_sum", _column, {"input": input}, 1, {"weight": weight}, 1)
    return column.squeeze(-1)


def _is_there(x: torch.Tensor, weight: torch.Tensor, needs_gradients: bool) -> bool:
    if not has_kernel(x, weight):
        return False
    features = weight.shape[0]
    key, dims = (x.dtype, x.get_device(), (), (features,)), (x.numel() // features, features)
    return is_there(needs_gradients, (_forward, key, dims), (_backward, key, dims))


def _column(input: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return weighted_sum(input, weight).unsqueeze(-1)
