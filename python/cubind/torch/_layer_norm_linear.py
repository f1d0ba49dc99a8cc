"""A product of normalized rows: cubind::layer_norm_linear. Its gradients are those of LayerNorm and of the
product, by their own operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ._call import Call, Tensors
from ._dispatch import Dispatched, Gradients
from ._layer_norm import backward_call, layer_norm
from ._linear import linear, linear_gradients
from ._operator import Operator
from ._tensors import Three
from ._variants import Need

_forward = Operator("layernorm_linear", ("M", "N", "K"), ("TRANSPOSE_W", "BIAS", "ACTIVATION"))


# By whether there is a bias. The weight is like torch's: [N, K].
def _call(has_bias: bool) -> Call:
    shapes = {"x": "M* K", "gamma": "K", "beta": "K", "w": "N K"}
    if has_bias:
        shapes["bias"] = "N"
    outputs = {"y": "M* N", "mean": "M* f32", "rstd": "M* f32"}
    return _forward.call(shapes, outputs, {"eps": 1e-6}, flags=(1, int(has_bias), 0))


_calls = (_call(False), _call(True))


def _formula(
    x: Tensor, gamma: Tensor, beta: Tensor, weight: Tensor, bias: Tensor | None, eps: float
) -> Three:
    normalized, mean, rstd = torch.ops.cubind.layer_norm(x, gamma, beta, eps)  # whose kernel may be there
    return functional.linear(normalized, weight, bias), mean, rstd


# The normalized rows are not stored: the gradient of the weight computes them once more.
def _gradients(ctx: Any, dy: Tensor) -> Gradients:
    x, gamma, beta, weight, mean, rstd = ctx.saved_tensors
    (eps,), needs, ops = ctx.others, ctx.needs_input_grad, torch.ops.cubind
    rows = dy.reshape(-1, weight.shape[0])
    normed: Gradients = (None, None, None)
    dweight = dbias = None
    if any(needs[:3]):
        slope = ops.matmul(rows, weight, None, False, False).view(x.shape)
        given = ops.layer_norm_backward(slope, x, gamma, mean, rstd)
        normed = tuple(g if needed else None for g, needed in zip(given, needs))
    if needs[3]:
        normalized = ops.layer_norm(x, gamma, beta, eps)[0].reshape(-1, weight.shape[1])
        dweight = ops.matmul(rows, normalized, None, True, False)
    if any(needs[4:]):  # without a bias there is no fifth tensor
        dbias = rows.sum(0)
    return *normed, dweight, dbias


def _ahead(need: Need, tensors: Tensors) -> Iterator[Need]:
    M, _, K = need.dims
    yield backward_call.at(need, M, K)
    yield from linear_gradients(need, (tensors[0], tensors[3]))


_operator = Dispatched(
    "layer_norm_linear(Tensor x, Tensor gamma, Tensor beta, Tensor weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
    _calls,
    _formula,
)
_operator.differentiate((0, 1, 2, 3, 6, 7), _gradients, ahead=_ahead)


def layer_norm_linear(
    input: Tensor,
    norm_weight: Tensor,
    norm_bias: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """linear() of layer_norm(), by one of cubind's kernels on a GPU.

    input: [..., K]; bf16, f16 or f32. norm_weight, norm_bias: [K]; weight: [N, K]; bias: [N]; all of input's
        type. eps: added to the variance. The result: [..., N].

    layer_norm() and linear() are used as rms_norm() says. DTensors are accepted.
    """
    tensors = (input, norm_weight, norm_bias, weight)
    y = _calls[0](None, *tensors, eps) if bias is None else _calls[1](None, *tensors, bias, eps)
    if y is not NotImplemented:
        return y
    return linear(layer_norm(input, norm_weight.shape, norm_weight, norm_bias, eps), weight, bias)
