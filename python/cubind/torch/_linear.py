"""Matrix products: cubind::matmul, and torch's linear by it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ._call import Call, Tensors
from ._dispatch import Dispatched, Gradients
from ._operator import Operator
from ._variants import Need

_matmul = Operator("matmul", ("M", "N", "K"), ("TRANSPOSE_A", "TRANSPOSE_B", "BIAS"))


# By the flags. Rows of a may have any number of dims.
def _call(transpose_a: bool, transpose_b: bool, has_bias: bool) -> Call:
    shapes = {"a": "K M" if transpose_a else "M* K", "b": "N K" if transpose_b else "K N"}
    if has_bias:
        shapes["bias"] = "N"
    return _matmul.call(
        shapes,
        {"c": "M N" if transpose_a else "M* N"},
        flags=(int(transpose_a), int(transpose_b), int(has_bias)),
        constants=(transpose_a, transpose_b),
    )


_calls = {flags: _call(*flags) for flags in itertools.product((False, True), repeat=3)}


def _formula(a: Tensor, b: Tensor, bias: Tensor | None, transpose_a: bool, transpose_b: bool) -> Tensor:
    left, right = a.t() if transpose_a else a, b if transpose_b else b.t()
    return functional.linear(left, right, bias).contiguous()


# Each gradient is a product again, of the operands as they lie.
def _gradients(ctx: Any, dc: Tensor) -> Gradients:
    a, b = ctx.saved_tensors
    turned_a, turned_b = ctx.others
    product = _operator
    da = db = dbias = None
    if ctx.needs_input_grad[0]:
        da = product(b, dc, None, turned_b, True) if turned_a else product(dc, b, None, False, not turned_b)
    rows, slopes = a if turned_a else a.reshape(-1, a.shape[-1]), dc.reshape(-1, dc.shape[-1])
    if ctx.needs_input_grad[1]:
        db = (
            product(slopes, rows, None, True, turned_a)
            if turned_b
            else product(rows, slopes, None, not turned_a, False)
        )
    if any(ctx.needs_input_grad[2:]):  # a product without a bias has no third tensor
        dbias = slopes.sum(0)
    return da, db, dbias


_operator = Dispatched(
    "matmul(Tensor a, Tensor b, Tensor? bias, bool transpose_a, bool transpose_b) -> Tensor",
    _calls.values(),
    _formula,
    distributed=("linear", "input", "weight", "bias"),
)


def linear_gradients(need: Need, tensors: Tensors) -> Iterator[Need]:
    """The products that are the gradients of linear(): dy [M, N] times the weight [N, K] for x [M, K], and
    the turned dy times x for the weight. tensors: x and the weight."""
    M, N, K = need.dims
    if tensors[0].requires_grad:
        yield _calls[False, False, False].at(need, M, K, N)
    if tensors[1].requires_grad:
        yield _calls[True, False, False].at(need, N, K, M)


_operator.differentiate((0, 1), _gradients, ahead=linear_gradients)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """torch.nn.functional.linear, by cubind's kernel for products on a GPU.

    input: [..., K]; bf16, f16 or f32. weight: [N, K], bias: [N], of the same type.

    Torch's own function is used as rms_norm() says. DTensors are accepted.
    """
    if bias is None:
        y = _calls[False, True, False](None, input, weight)
    else:
        y = _calls[False, True, True](None, input, weight, bias)
    return y if y is not NotImplemented else functional.linear(input, weight, bias)


class Linear(torch.nn.Linear):
    """torch.nn.Linear by linear(): the same arguments, parameters and state dict."""

    def forward(self, input: Tensor) -> Tensor:
        """input: [..., K]."""
        return linear(input, self.weight, self.bias)
