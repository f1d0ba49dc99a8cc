"""Matrix products: cubind::matmul, and torch's linear by it."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import torch
from torch.compiler import is_compiling, is_dynamo_compiling
from torch.nn import functional

from .._switch import IS_OFF
from ._dispatch import Dispatched, Gradients, applies, is_direct, stream_of
from ._dtensor import are_distributed, run_locally
from ._operator import Need, Operator, is_there
from ._variants import TYPES, Call, has_kernel

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


# linear() of any number of dims, by whether there is a bias.
def _rows_call(has_bias: bool) -> Call:
    return _matmul.call(
        ("M* K", "N K", *(("N",) if has_bias else ())),
        ("M* N",),
        known=("N", "K"),
        flags=(0, 1, int(has_bias)),
        without=() if has_bias else ("bias",),
    )


_rows_calls = (_rows_call(False), _rows_call(True))


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
    if known is not None and known is not NotImplemented:
        return known
    same = all(other.dtype == a.dtype and other.device == a.device for other in others)
    M, N, K = _sizes(a, b, transpose_a, transpose_b)
    if known is None and a.dtype in TYPES and same and M * N * K > 0:
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
_operator.differentiate((0, 1), _gradients, *((call, None) for call in _calls.values()))


def _rows_gradients(ctx: Any, dy: torch.Tensor) -> Gradients:
    x, weight = ctx.saved_tensors
    rows, slopes = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
    dx = dweight = dbias = None
    if ctx.needs_input_grad[0]:
        dx = _operator(slopes, weight, None, False, False).view(x.shape)
    if ctx.needs_input_grad[1]:
        dweight = _operator(slopes, rows, None, True, False)
    if any(ctx.needs_input_grad[2:]):
        dbias = slopes.sum(0)
    return dx, dweight, dbias


for _one in _rows_calls:
    _operator.differentiate_call(_one, (0, 1), _rows_gradients)


def linear(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """torch.nn.functional.linear, by cubind's kernel for products on a GPU.

    input: [..., K]; bf16, f16 or f32. weight: [N, K], bias: [N], of the same type.

    Torch's own function is used as rms_norm() says. DTensors are accepted.
    """
    y: Any = NotImplemented if IS_OFF else None
    if y is None and not is_dynamo_compiling():
        y = _direct(input, weight, bias)
    if y is None:
        y = _longer(input, weight, bias)
    return y if y is not NotImplemented else functional.linear(input, weight, bias)


# NotImplemented: torch's own function takes its place.
def _longer(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> Any:
    if weight.dim() != 2 or input.shape[-1:] != weight.shape[-1:] or not applies(input, weight, bias):
        if not are_distributed(input, weight, bias):
            return NotImplemented
        parameters = {"weight": weight, "bias": bias}
        return run_locally("linear", linear, {"input": input}, 1, parameters, weight.shape[0])
    rows = input.reshape(-1, input.shape[-1])
    direct = is_direct(rows, weight, bias)
    y: Any = _direct(rows, weight, bias) if direct else None
    if y is None and (is_compiling() or _is_there(rows, weight, bias)):
        needs = rows.requires_grad or weight.requires_grad or (bias is not None and bias.requires_grad)
        run = functools.partial(_operator.direct, needs) if direct else _operator
        y = run(rows, weight, bias, False, True)
    return y.view(*input.shape[:-1], weight.shape[0]) if isinstance(y, torch.Tensor) else NotImplemented


def _is_there(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> bool:
    if not has_kernel(x, weight, *(() if bias is None else (bias,))) or weight.numel() == 0:
        return False
    needs = x.requires_grad or weight.requires_grad
    (M, K), N = x.shape, weight.shape[0]
    key = (x.dtype, x.get_device(), (0, 1, int(bias is not None)), (N, K))
    return is_there(needs, (_matmul, key, (M, N, K)), *linear_gradients(x, weight))


def linear_gradients(x: torch.Tensor, weight: torch.Tensor) -> list[Need]:
    """The products that are the gradients of linear(): dy [M, N] times the weight [N, K] for x [M, K], and
    the turned dy times x for the weight."""
    (M, K), N, device = x.shape, weight.shape[0], x.get_device()
    needs: list[Need] = []
    if x.requires_grad:
        needs.append((_matmul, (x.dtype, device, (0, 0, 0), (K, N)), (M, K, N)))
    if weight.requires_grad:
        needs.append((_matmul, (x.dtype, device, (1, 0, 0), (K, M)), (N, K, M)))
    return needs


def _direct(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor | None:
    if bias is None:
        return _rows_calls[False].direct(None, x, weight)
    return _rows_calls[True].direct(None, x, weight, bias)


class Linear(torch.nn.Linear):
    """torch.nn.Linear by linear(): the same arguments, parameters and state dict."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """input: [..., K]."""
        return linear(input, self.weight, self.bias)
