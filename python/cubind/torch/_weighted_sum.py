"""Weighted sums over the last dim: cubind::weighted_sum and cubind::weighted_sum_backward."""

from __future__ import annotations

import torch
from torch import Tensor

from ._dispatch import Dispatched
from ._operator import Operator
from ._tensors import Two

_DIMS = ("N", "D")
_call = Operator("weighted_sum_forward", _DIMS).call({"x": "N* D", "w": "D"}, {"y": "N*"})
_backward_call = Operator("weighted_sum_backward", _DIMS).call(
    {"dy": "N*", "x": "N* D", "w": "D"}, {"dx": "N* D", "dw": "D"}
)


def _backward_formula(dy: Tensor, x: Tensor, weight: Tensor) -> Two:
    dx = dy.unsqueeze(-1) * weight
    return dx.contiguous(), x.reshape(-1, weight.shape[0]).t().mv(dy.reshape(-1))


_backward_operator = Dispatched(
    "weighted_sum_backward(Tensor dy, Tensor x, Tensor weight) -> (Tensor, Tensor)",
    (_backward_call,),
    _backward_formula,
)
_backward_operator.differentiate_by_formula()
_operator = Dispatched(
    "weighted_sum(Tensor x, Tensor weight) -> Tensor",
    (_call,),
    torch.matmul,
    distributed=("weighted_sum", "input", "weight"),
)
_operator.differentiate((0, 1), _backward_operator)


def weighted_sum(input: Tensor, weight: Tensor) -> Tensor:
    """torch.matmul(input, weight): the sum over the last dim of input times weight, by cubind's kernels on a
    GPU.

    input: [..., D]; bf16, f16 or f32. weight: [D], of input's type. The result: [...].

    torch.matmul is used as rms_norm() says. DTensors are accepted.
    """
    y = _call(None, input, weight)
    return y if y is not NotImplemented else torch.matmul(input, weight)
