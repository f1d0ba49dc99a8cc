"""Softmax over the last dim: cubind::softmax and cubind::softmax_backward."""

from __future__ import annotations

from typing import Any

import torch
from torch.compiler import is_compiling, is_dynamo_compiling
from torch.nn import functional

from .. import _torch_private as private
from .._switch import IS_OFF
from ._dispatch import (
    Backward,
    Dispatched,
    Gradients,
    applies,
    contiguous_like,
    is_direct,
    stream_of,
    wide,
)
from ._dtensor import are_distributed, run_locally
from ._operator import Operator, is_there
from ._variants import has_kernel

_forward = Operator("softmax_forward", ("N", "D"), ("x", "y"))
_backward = Operator("softmax_backward", ("N", "D"), ("y", "dy", "dx"))
_call = _forward.call(("N* D",), ("N* D",), known=("D",))
_backward_call = _backward.call(("N* D", "N* D"), ("N* D",), known=("D",))


def _formula(x: torch.Tensor) -> torch.Tensor:
    return functional.softmax(x, -1).contiguous()


def _backward_formula(dy: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if private.softmax_backward is not None:
        dx: torch.Tensor = private.softmax_backward(dy, y, -1, y.dtype)
        return dx.contiguous()
    weighted = wide(dy) * wide(y)
    return (weighted - wide(y) * weighted.sum(-1, keepdim=True)).to(y.dtype).contiguous()


def _forward_cuda(x: torch.Tensor) -> torch.Tensor:
    y = _call.launch(x)
    if y is not None and y is not NotImplemented:
        return y
    if y is None and has_kernel(x):
        x = x.contiguous()
        y = torch.empty_like(x)
        features, device = x.shape[-1], x.get_device()
        key, dims = (x.dtype, device, (), (features,)), (x.numel() // features, features)
        if _forward.launch(key, dims, stream_of(device), (x, y)):
            return y
    return _formula(x)


def _backward_cuda(dy: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    dx = _backward_call.launch(y, dy)
    if dx is not None and dx is not NotImplemented:
        return dx
    if dx is None and has_kernel(y, dy):
        dy, y = dy.contiguous(), y.contiguous()
        dx = torch.empty_like(y)
        features, device = y.shape[-1], y.get_device()
        key, dims = (y.dtype, device, (), (features,)), (y.numel() // features, features)
        if _backward.launch(key, dims, stream_of(device), (y, dy, dx)):
            return dx
    return _backward_formula(dy, y)


def _gradients(ctx: Any, dy: torch.Tensor) -> Gradients:
    return (_backward_operator(dy, *ctx.saved_tensors),)


_operator = Dispatched("softmax(Tensor x) -> Tensor", _forward_cuda, _formula, contiguous_like, tensors=1)
_backward_operator = Dispatched(
    "softmax_backward(Tensor dy, Tensor y) -> Tensor",
    _backward_cuda,
    _backward_formula,
    lambda dy, y: contiguous_like(y),
    tensors=2,
)
_operator.differentiate((1,), _gradients, (_call, Backward(_backward_call, (0, -1))))
_backward_operator.differentiate_by_formula()


def softmax(input: torch.Tensor, dim: int | None = -1, dtype: torch.dtype | None = None) -> torch.Tensor:
    """torch.nn.functional.softmax, by cubind's kernels on a GPU.

    input: [..., D]; bf16, f16 or f32. dim: the last one.

    Torch's own function is used as rms_norm() says, over another dim, and with another dtype. DTensors are
    accepted.
    """
    y: Any = NotImplemented if IS_OFF else None
    if y is None and dim == -1 and dtype is None and not is_dynamo_compiling():
        y = _call.direct(None, input)
    if y is None:
        y = _longer(input, dim, dtype)
    return y if y is not NotImplemented else functional.softmax(input, dim, dtype=dtype)


# NotImplemented: torch's own function takes its place.
def _longer(input: torch.Tensor, dim: int | None, dtype: torch.dtype | None) -> Any:
    if input.dim() == 0 or dim not in (-1, input.dim() - 1) or dtype is not None:
        return NotImplemented
    direct = is_direct(input)
    if (direct or applies(input)) and (is_compiling() or _is_there(input)):
        return _operator.direct(input.requires_grad, input) if direct else _operator(input)
    return run_locally("softmax", softmax, {"input": input}, 1) if are_distributed(input) else NotImplemented


def _is_there(x: torch.Tensor) -> bool:
    if not has_kernel(x):
        return False
    features = x.shape[-1]
    key, dims = (x.dtype, x.get_device(), (), (features,)), (x.numel() // features, features)
    return is_there(x.requires_grad, (_forward, key, dims), (_backward, key, dims))
