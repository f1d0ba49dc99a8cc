"""Softmax over the last dim: cubind::softmax and cubind::softmax_backward."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from .. import _torch_private as private
from ._dispatch import Dispatched
from ._operator import Operator
from ._tensors import wide

_DIMS = ("N", "D")
_call = Operator("softmax_forward", _DIMS).call({"x": "N* D"}, {"y": "N* D"})
_backward_call = Operator("softmax_backward", _DIMS).call({"dy": "N* D", "y": "N* D"}, {"dx": "N* D"})


def _formula(x: Tensor) -> Tensor:
    return functional.softmax(x, -1).contiguous()


def _backward_formula(dy: Tensor, y: Tensor) -> Tensor:
    if private.softmax_backward is not None:
        dx: Tensor = private.softmax_backward(dy, y, -1, y.dtype)
        return dx.contiguous()
    weighted = wide(dy) * wide(y)
    return (weighted - wide(y) * weighted.sum(-1, keepdim=True)).to(y.dtype).contiguous()


_backward_operator = Dispatched(
    "softmax_backward(Tensor dy, Tensor y) -> Tensor", (_backward_call,), _backward_formula
)
_backward_operator.differentiate_by_formula()
_operator = Dispatched("softmax(Tensor x) -> Tensor", (_call,), _formula, distributed=("softmax", "input"))
_operator.differentiate((1,), _backward_operator)


def softmax(input: Tensor, dim: int | None = -1, dtype: torch.dtype | None = None) -> Tensor:
    """torch.nn.functional.softmax, by cubind's kernels on a GPU.

    input: [..., D]; bf16, f16 or f32. dim: the last one.

    Torch's own function is used as rms_norm() says, over another dim, and with another dtype. DTensors are
    accepted.
    """
    is_last = dtype is None and (dim == -1 or dim == input.dim() - 1) and input.dim() > 0
    y = _call(None, input) if is_last else NotImplemented
    return y if y is not NotImplemented else functional.softmax(input, dim, dtype=dtype)
