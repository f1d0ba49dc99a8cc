"""Matrix products: cubind::matmul, and torch's linear by it."""

from __future__ import annotations

import itertools
from typing import Any

import torch
import torch.nn.functional
from torch.compiler import is_dynamo_compiling

from ._dispatch import Dispatched, Gradients, applies, is_direct, stream_of
from ._dtensor import are_distributed, run_locally
from ._variants import TYPES, Call, Operator

_FLAGS = ("TRANSPOSE_A", "TRANSPOSE_B", "BIAS")
_matmul = Operator("matmul", ("M", "N", "K"), ("a", "b", "bias", "c"), _FLAGS)


# By the flags.
def _call(transpose_a: bool, transpose_b: bool, has_bias: bool) -> Call:
    return _matmul.call(
        ("K M" if transpose_a else "M K", "N K" if transpose_b else "K N", *(("N",) if has_bias else ())),
        ("M N",),
        known=("N", "K"),
        flags=(int(transpose_a), int(transpose_b), int(has_bias)),
        constants=(transpose_a, transpose_b),
        without=() if has_bias else ("bias",),
    )


_calls = {flags: _call(*flags) for flags in itertools.product((False, True), repeat=3)}


# (M, N, K) of the product.
def _sizes(a: torch.Tensor, b: torch.Tensor, transpose_a: bool, transpose_b: bool) -> tuple[int, int, int]:
    return (
        a.shape[1 if transpose_a else 0],
        b.shape[0 if transpose_b else 1],
        a.shape[0 if transpose_a else 1],
    )


def _formula(
    a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, transpose_a: bool, transpose_b: bool
) -> torch.Tensor:
    left, right = a.t() if transpose_a else a, b.t() if transpose_b else b
    product = left @ right if bias is None else torch.addmm(bias, left, right)
    return product.contiguous()


def _cuda(
    a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, transpose_a: bool, transpose_b: bool
) -> torch.Tensor:
    others = (b,) if bias is None else (b, bias)
    known = _calls[transpose_a, transpose_b, bias is not None].launch(a, *others)
    if known is not None:
        return known
    same = all(other.dtype == a.dtype and other.device == a.device for other in others)
    M, N, K = _sizes(a, b, transpose_a, transpose_b)
    if a.dtype in TYPES and same and M * N * K > 0:
        a, b = a.contiguous(), b.contiguous()
        c, device = a.new_empty(M, N), a.get_device()
        key = (a.dtype, device, (int(transpose_a), int(transpose_b), int(bias is not None)), (N, K))
        arguments = (a, b, 0 if bias is None else bias.contiguous(), c)  # 0: without a bias nothing is read
        if _matmul.launch(key, (M, N, K), stream_of(device), arguments):
            return c
    return _formula(a, b, bias, transpose_a, transpose_b)


def _fake(
    a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, transpose_a: bool, transpose_b: bool
) -> torch.Tensor:
    M, N, _ = _sizes(a, b, transpose_a, transpose_b)
    return a.new_empty(M, N)


# Each gradient is a product again, of the operands as they lie.
def _gradients(ctx: Any, dc: torch.Tensor) -> Gradients:
    a, b = ctx.saved_tensors
    turned_a, turned_b = ctx.others
    product = _operator
    da = db = dbias = None
    if ctx.needs_input_grad[0]:
        da = product(b, dc, None, turned_b, True) if turned_a else product(dc, b, None, False, not turned_b)
    if ctx.needs_input_grad[1]:
        db = product(dc, a, None, True, turned_a) if turned_b else product(a, dc, None, not turned_a, False)
    if any(ctx.needs_input_grad[2:]):  # a product without a bias has no third tensor
        dbias = dc.sum(0)
    return da, db, dbias


_operator = Dispatched(
    "matmul(Tensor a, Tensor b, Tensor? bias, bool transpose_a, bool transpose_b) -> Tensor",
    _cuda,
    _formula,
    _fake,
    tensors=3,
)
_operator.differentiate((0, 1), _gradients, *_calls.values())


def linear(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """torch.nn.functional.linear, by cubind's kernel for products on a GPU.

    input: [..., K]; bf16, f16 or f32. weight: [N, K], bias: [N], of the same type.

    torch's own formula is used as rms_norm() says. So are DTensors taken.
    """
    if input.dim() == 2 and not is_dynamo_compiling():
        product = _direct(input, weight, bias)
        if product is not None:
            return product
    if weight.dim() != 2 or input.shape[-1:] != weight.shape[-1:] or not applies(input, weight, bias):
        if are_distributed(input, weight, bias):
            parameters = {"weight": weight, "bias": bias}
            return run_locally("linear", linear, {"input": input}, 1, parameters, weight.shape[0])
        return torch.nn.functional.linear(input, weight, bias)
    rows = input.reshape(-1, input.shape[-1])
    if is_direct(rows, weight, bias):
        product = _direct(rows, weight, bias)
        if product is None:
            needs = rows.requires_grad or weight.requires_grad or (bias is not None and bias.requires_grad)
            product = _operator.direct(needs, rows, weight, bias, False, True)
    else:
        product = _operator(rows, weight, bias, False, True)
    return product.view(*input.shape[:-1], weight.shape[0])


def _direct(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor | None:
    if bias is None:
        return _calls[False, True, False].direct(None, rows, weight)
    return _calls[False, True, True].direct(None, rows, weight, bias)


class Linear(torch.nn.Linear):
    """torch.nn.Linear by linear(): the same arguments, parameters and state dict."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """input: [..., K]."""
        return linear(input, self.weight, self.bias)
