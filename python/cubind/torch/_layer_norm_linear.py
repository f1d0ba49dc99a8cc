"""A product of normalized rows: cubind::layer_norm_linear. Its gradients are those of LayerNorm and of the
product, by their own operators."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.compiler import is_compiling, is_dynamo_compiling
from torch.nn import functional

from .._switch import IS_OFF
from ._dispatch import Dispatched, Gradients, applies, is_direct, statistics, stream_of
from ._layer_norm import backward_need, layer_norm
from ._linear import linear, linear_gradients
from ._operator import Operator, is_there
from ._variants import Call, has_kernel

_forward = Operator(
    "layernorm_linear",
    ("M", "N", "K"),
    ("x", "gamma", "beta", "w", "bias", "y", "mean", "rstd", "eps"),
    ("TRANSPOSE_W", "BIAS", "ACTIVATION"),
)


# By whether there is a bias. The weight is like torch's: [N, K].
def _call(has_bias: bool) -> Call:
    return _forward.call(
        ("M* K", "K", "K", "N K", *(("N",) if has_bias else ())),
        ("M* N", "M* f32", "M* f32"),
        known=("N", "K"),
        numbers=1,
        flags=(1, int(has_bias), 0),
        without=() if has_bias else ("bias",),
    )


_calls = (_call(False), _call(True))

Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def _formula(
    x: torch.Tensor,
    gamma: torch.Tensor,
    beta: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    eps: float,
) -> Three:
    normalized, mean, rstd = torch.ops.cubind.layer_norm(x, gamma, beta, eps)  # whose kernel may be there
    return functional.linear(normalized, weight, bias), mean, rstd


def _cuda(
    x: torch.Tensor,
    gamma: torch.Tensor,
    beta: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    eps: float,
) -> Three:
    others = (gamma, beta, weight) if bias is None else (gamma, beta, weight, bias)
    known = _calls[bias is not None].launch(x, *others, eps)
    if known is not None and known is not NotImplemented:
        return known
    if known is None and has_kernel(x, *others) and weight.numel() > 0:
        outputs = _launch(x, gamma, beta, weight, bias, eps)
        if outputs is not None:
            return outputs
    return _formula(x, gamma, beta, weight, bias, eps)


def _launch(
    x: torch.Tensor,
    gamma: torch.Tensor,
    beta: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    eps: float,
) -> Three | None:
    x, (N, K), device = x.contiguous(), weight.shape, x.get_device()
    outputs = _fake(x, gamma, beta, weight, bias, eps)
    arguments = (
        x,
        gamma.contiguous(),
        beta.contiguous(),
        weight.contiguous(),
        0 if bias is None else bias.contiguous(),  # 0: without a bias nothing is read
        *outputs,
        eps,
    )
    key = (x.dtype, device, (1, int(bias is not None), 0), (N, K))
    launched = _forward.launch(key, (x.numel() // K, N, K), stream_of(device), arguments)
    return outputs if launched else None


def _fake(
    x: torch.Tensor,
    gamma: torch.Tensor,
    beta: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    eps: float,
) -> Three:
    y = x.new_empty(*x.shape[:-1], weight.shape[0])
    return y, statistics(x), statistics(x)


# The normalized rows are not stored: the gradient of the weight computes them once more.
def _gradients(ctx: Any, dy: torch.Tensor) -> Gradients:
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


_operator = Dispatched(
    "layer_norm_linear(Tensor x, Tensor gamma, Tensor beta, Tensor weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
    _cuda,
    _formula,
    _fake,
    tensors=5,
)
_operator.differentiate((0, 1, 2, 3, 6, 7), _gradients, *((call, None) for call in _calls))


def layer_norm_linear(
    input: torch.Tensor,
    norm_weight: torch.Tensor,
    norm_bias: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
) -> torch.Tensor:
    """linear() of layer_norm(), by one of cubind's kernels on a GPU.

    input: [..., K]; bf16, f16 or f32. norm_weight, norm_bias: [K]; weight: [N, K]; bias: [N]; all of input's
        type. eps: added to the variance. The result: [..., N].

    layer_norm() and linear() are used as rms_norm() says. DTensors are accepted.
    """
    tensors = (input, norm_weight, norm_bias, weight)
    y: Any = NotImplemented if IS_OFF else None
    if y is None and not is_dynamo_compiling():
        y = _direct(tensors, bias, eps)
    if isinstance(y, torch.Tensor):
        return y
    if y is None and input.shape[-1:] == norm_weight.shape == norm_bias.shape == weight.shape[1:]:
        direct = is_direct(*tensors, bias)
        if (direct or applies(*tensors, bias)) and (is_compiling() or _is_there(*tensors, bias)):
            needs = any(tensor is not None and tensor.requires_grad for tensor in (*tensors, bias))
            run = functools.partial(_operator.direct, needs) if direct else _operator
            return run(*tensors, bias, eps)[0]
    return linear(layer_norm(input, norm_weight.shape, norm_weight, norm_bias, eps), weight, bias)


def _is_there(
    x: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> bool:
    tensors = (x, gamma, beta, weight) if bias is None else (x, gamma, beta, weight, bias)
    if not has_kernel(*tensors) or weight.numel() == 0:
        return False
    N, K = weight.shape
    key, rows = (x.dtype, x.get_device(), (1, int(bias is not None), 0), (N, K)), x.reshape(-1, K)
    ahead = (backward_need(x, K), *linear_gradients(rows, weight))
    needs = any(tensor.requires_grad for tensor in tensors)
    return is_there(needs, (_forward, key, (rows.shape[0], N, K)), *ahead)


def _direct(tensors: tuple[torch.Tensor, ...], bias: torch.Tensor | None, eps: float) -> torch.Tensor | None:
    if bias is None:
        return _calls[False].direct(None, *tensors, eps)
    return _calls[True].direct(None, *tensors, bias, eps)
