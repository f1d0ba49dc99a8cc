"""GELU and SiLU, and products with them: cubind::activation, cubind::gated_activation and their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.compiler import is_compiling, is_dynamo_compiling
from torch.nn import functional

from .._switch import IS_OFF
from ._dispatch import Backward, Dispatched, Gradients, applies, contiguous_like, is_direct, stream_of
from ._operator import Operator, is_there
from ._variants import Call, has_kernel

_GELU, _SILU, _GELU_TANH = 1, 2, 3  # as the kernels number them
_NUMBERS = {"none": _GELU, "tanh": _GELU_TANH}
_FLAGS = ("ACTIVATION", "GATE")
_forward = Operator("activation_forward", ("N",), ("x", "up", "y"), _FLAGS)
_backward = Operator("activation_backward", ("N",), ("x", "up", "dy", "dx", "dup"), _FLAGS)

_Tensors = tuple[torch.Tensor, ...]


# By the number of an activation: calls with a gate and without.
def _calls(operator: Operator, tensors: int, results: int, optional: str) -> dict[tuple[int, bool], Call]:
    return {
        (number, gate): operator.call(
            ("N*",) * (tensors + gate),
            ("N*",) * (results if gate else 1),
            known=(),
            flags=(number, int(gate)),
            constants=(number,),
            without=() if gate else tuple(optional.split()),
        )
        for number in (_GELU, _SILU, _GELU_TANH)
        for gate in (False, True)
    }


_forward_calls = _calls(_forward, 1, 1, "up")
_backward_calls = _calls(_backward, 2, 2, "up dup")


def _activated(x: torch.Tensor, number: int) -> torch.Tensor:
    if number == _SILU:
        return functional.silu(x)
    return functional.gelu(x, approximate="tanh" if number == _GELU_TANH else "none")


def _slope(dy: torch.Tensor, x: torch.Tensor, number: int) -> torch.Tensor:
    if number == _SILU and torch.is_grad_enabled():  # silu_backward has no derivative
        sigmoid = torch.sigmoid(x)
        return dy * sigmoid * (1 + x * (1 - sigmoid))
    if number == _SILU:
        return torch.ops.aten.silu_backward(dy, x)
    return torch.ops.aten.gelu_backward(dy, x, approximate="tanh" if number == _GELU_TANH else "none")


def _formula(x: torch.Tensor, number: int) -> torch.Tensor:
    return _activated(x, number).contiguous()


def _gated_formula(x: torch.Tensor, up: torch.Tensor, number: int) -> torch.Tensor:
    return (_activated(x, number) * up).contiguous()


def _backward_formula(dy: torch.Tensor, x: torch.Tensor, number: int) -> torch.Tensor:
    return _slope(dy, x, number).contiguous()


def _gated_backward_formula(dy: torch.Tensor, x: torch.Tensor, up: torch.Tensor, number: int) -> _Tensors:
    return _slope(dy * up, x, number).contiguous(), (dy * _activated(x, number)).contiguous()


# The outputs for `given`, which are in the kernel's order; None: torch's formula takes their place.
def _launched(
    operator: Operator, calls: dict[tuple[int, bool], Call], number: int, gate: bool, given: _Tensors
) -> Any:
    known = calls[number, gate].launch(*given)
    if known is not None:
        return known if known is not NotImplemented else None
    if not has_kernel(*given):
        return None
    given = tuple(tensor.contiguous() for tensor in given)
    x = given[0]
    backward = operator is _backward
    results = tuple(torch.empty_like(x) for _ in range(2 if backward and gate else 1))
    arguments = (
        (x, *given[1:], *results) if gate else (x, 0, *given[1:], *results, *((0,) if backward else ()))
    )
    key = (x.dtype, x.get_device(), (number, int(gate)), ())
    if operator.launch(key, (x.numel(),), stream_of(x.get_device()), arguments):
        return results if len(results) > 1 else results[0]
    return None


def _cuda(x: torch.Tensor, number: int) -> torch.Tensor:
    y = _launched(_forward, _forward_calls, number, False, (x,))
    return _formula(x, number) if y is None else y


def _gated_cuda(x: torch.Tensor, up: torch.Tensor, number: int) -> torch.Tensor:
    y = _launched(_forward, _forward_calls, number, True, (x, up))
    return _gated_formula(x, up, number) if y is None else y


def _backward_cuda(dy: torch.Tensor, x: torch.Tensor, number: int) -> torch.Tensor:
    dx = _launched(_backward, _backward_calls, number, False, (x, dy))
    return _backward_formula(dy, x, number) if dx is None else dx


def _gated_backward_cuda(dy: torch.Tensor, x: torch.Tensor, up: torch.Tensor, number: int) -> _Tensors:
    both = _launched(_backward, _backward_calls, number, True, (x, up, dy))
    return _gated_backward_formula(dy, x, up, number) if both is None else both


def _gradients(ctx: Any, dy: torch.Tensor) -> Gradients:
    return (_backward_operator(dy, *ctx.saved_tensors, *ctx.others),)


def _gated_gradients(ctx: Any, dy: torch.Tensor) -> Gradients:
    both: Gradients = _gated_backward_operator(dy, *ctx.saved_tensors, *ctx.others)
    return both


_operator = Dispatched(
    "activation(Tensor x, int number) -> Tensor", _cuda, _formula, lambda x, _: contiguous_like(x), tensors=1
)
_gated_operator = Dispatched(
    "gated_activation(Tensor x, Tensor up, int number) -> Tensor",
    _gated_cuda,
    _gated_formula,
    lambda x, up, _: contiguous_like(x),
    tensors=2,
)
_backward_operator = Dispatched(
    "activation_backward(Tensor dy, Tensor x, int number) -> Tensor",
    _backward_cuda,
    _backward_formula,
    lambda dy, x, _: contiguous_like(x),
    tensors=2,
)
_gated_backward_operator = Dispatched(
    "gated_activation_backward(Tensor dy, Tensor x, Tensor up, int number) -> (Tensor, Tensor)",
    _gated_backward_cuda,
    _gated_backward_formula,
    lambda dy, x, up, _: (contiguous_like(x), contiguous_like(up)),
    tensors=3,
)


# Each call with the kernel of its gradients, which takes the saved tensors and the slope.
def _pairs(has_gate: bool, places: tuple[int, ...]) -> Iterator[tuple[Call, Backward]]:
    for key, call in _forward_calls.items():
        if key[1] == has_gate:
            yield call, Backward(_backward_calls[key], places)


_operator.differentiate((0,), _gradients, *_pairs(False, (0, -1)))
_gated_operator.differentiate((0, 1), _gated_gradients, *_pairs(True, (0, 1, -1)))
_backward_operator.differentiate_by_formula()
_gated_backward_operator.differentiate_by_formula()


def silu(input: torch.Tensor) -> torch.Tensor:
    """torch.nn.functional.silu, by cubind's kernels on a GPU.

    input: any shape; bf16, f16 or f32. Torch's own function is used as rms_norm() says, and for DTensors.
    """
    y = _one(input, _SILU)
    return y if y is not NotImplemented else functional.silu(input)


def gelu(input: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    """torch.nn.functional.gelu, by cubind's kernels on a GPU.

    input, Torch's own function: as silu(). approximate: "none" (by erf) or "tanh".
    """
    number = _NUMBERS.get(approximate)
    y = _one(input, number) if number is not None else NotImplemented
    return y if y is not NotImplemented else functional.gelu(input, approximate=approximate)


def swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """silu(gate) * up in one kernel: the gated layer of Llama, Qwen and Mistral.

    gate, up: of one shape and type; bf16, f16 or f32. Torch's own functions are used as rms_norm() says, and
        for DTensors.
    """
    return _product(gate, up, _SILU)


def geglu(gate: torch.Tensor, up: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    """gelu(gate) * up in one kernel: the gated layer of Gemma (approximate="tanh").

    gate, up: as swiglu() takes them. approximate: "none" (by erf) or "tanh".
    """
    number = _NUMBERS.get(approximate)
    if number is None:
        return functional.gelu(gate, approximate=approximate) * up  # which raises torch's error
    return _product(gate, up, number)


def _product(gate: torch.Tensor, up: torch.Tensor, number: int) -> torch.Tensor:
    same = gate.shape == up.shape and gate.dtype == up.dtype
    y: Any = NotImplemented if IS_OFF or not same else None
    if y is None and not is_dynamo_compiling():
        y = _forward_calls[number, True].direct(None, gate, up)
    if y is None:
        y = _longer(_gated_operator, number, gate, up)
    return y if y is not NotImplemented else _activated(gate, number) * up


# NotImplemented: torch's own function takes its place.
def _one(x: torch.Tensor, number: int) -> Any:
    y: Any = NotImplemented if IS_OFF else None
    if y is None and not is_dynamo_compiling():
        y = _forward_calls[number, False].direct(None, x)
    return _longer(_operator, number, x) if y is None else y


def _longer(operator: Dispatched, number: int, *given: torch.Tensor) -> Any:
    direct = is_direct(*given)
    needs = any(tensor.requires_grad for tensor in given)
    if direct or applies(*given):
        if not (is_compiling() or _is_there(number, needs, *given)):
            return NotImplemented
        return operator.direct(needs, *given, number) if direct else operator(*given, number)
    return NotImplemented


def _is_there(number: int, needs_gradients: bool, x: torch.Tensor, *up: torch.Tensor) -> bool:
    if not has_kernel(x, *up):
        return False
    key, dims = (x.dtype, x.get_device(), (number, len(up)), ()), (x.numel(),)
    return is_there(needs_gradients, (_forward, key, dims), (_backward, key, dims))
