"""GELU and SiLU, and products with them: cubind::activation, cubind::gated_activation and their gradients."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ._call import Call
from ._dispatch import Dispatched
from ._operator import Operator
from ._tensors import Two

_GELU, _SILU, _GELU_TANH = 1, 2, 3  # as the kernels number them
_NUMBERS = {"none": _GELU, "tanh": _GELU_TANH}
_FLAGS = ("ACTIVATION", "GATE")
_forward = Operator("activation_forward", ("N",), _FLAGS)
_backward = Operator("activation_backward", ("N",), _FLAGS)


# By the number of an activation.
def _calls(operator: Operator, inputs: str, outputs: str, gate: int) -> dict[int, Call]:
    given, made = (dict.fromkeys(names.split(), "N*") for names in (inputs, outputs))
    return {
        number: operator.call(given, made, flags=(number, gate), constants=(number,))
        for number in (_GELU, _SILU, _GELU_TANH)
    }


_plain_calls = _calls(_forward, "x", "y", 0)
_gated_calls = _calls(_forward, "x up", "y", 1)


def _activated(x: Tensor, number: int) -> Tensor:
    if number == _SILU:
        return functional.silu(x)
    return functional.gelu(x, approximate="tanh" if number == _GELU_TANH else "none")


def _slope(dy: Tensor, x: Tensor, number: int) -> Tensor:
    if number == _SILU and torch.is_grad_enabled():  # silu_backward has no derivative
        sigmoid = torch.sigmoid(x)
        return dy * sigmoid * (1 + x * (1 - sigmoid))
    if number == _SILU:
        return torch.ops.aten.silu_backward(dy, x)
    return torch.ops.aten.gelu_backward(dy, x, approximate="tanh" if number == _GELU_TANH else "none")


def _formula(x: Tensor, number: int) -> Tensor:
    return _activated(x, number).contiguous()


def _gated_formula(x: Tensor, up: Tensor, number: int) -> Tensor:
    return (_activated(x, number) * up).contiguous()


def _backward_formula(dy: Tensor, x: Tensor, number: int) -> Tensor:
    return _slope(dy, x, number).contiguous()


def _gated_backward_formula(dy: Tensor, x: Tensor, up: Tensor, number: int) -> Two:
    return _slope(dy * up, x, number).contiguous(), (dy * _activated(x, number)).contiguous()


_backward_operator = Dispatched(
    "activation_backward(Tensor dy, Tensor x, int number) -> Tensor",
    _calls(_backward, "dy x", "dx", 0).values(),
    _backward_formula,
)
_backward_operator.differentiate_by_formula()
_gated_backward_operator = Dispatched(
    "gated_activation_backward(Tensor dy, Tensor x, Tensor up, int number) -> (Tensor, Tensor)",
    _calls(_backward, "dy x up", "dx dup", 1).values(),
    _gated_backward_formula,
)
_gated_backward_operator.differentiate_by_formula()
_operator = Dispatched("activation(Tensor x, int number) -> Tensor", _plain_calls.values(), _formula)
_operator.differentiate((0,), _backward_operator)
_gated_operator = Dispatched(
    "gated_activation(Tensor x, Tensor up, int number) -> Tensor", _gated_calls.values(), _gated_formula
)
_gated_operator.differentiate((0, 1), _gated_backward_operator)


def silu(input: Tensor) -> Tensor:
    """torch.nn.functional.silu, by cubind's kernels on a GPU.

    input: any shape; bf16, f16 or f32. Torch's own function is used as rms_norm() says, and for DTensors.
    """
    y = _plain_calls[_SILU](None, input)
    return y if y is not NotImplemented else functional.silu(input)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """torch.nn.functional.gelu, by cubind's kernels on a GPU.

    input, Torch's own function: as silu(). approximate: "none" (by erf) or "tanh".
    """
    number = _NUMBERS.get(approximate)
    y = _plain_calls[number](None, input) if number is not None else NotImplemented
    return y if y is not NotImplemented else functional.gelu(input, approximate=approximate)


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up in one kernel: the gated layer of Llama, Qwen and Mistral.

    gate, up: of one shape and type; bf16, f16 or f32. Torch's own functions are used as rms_norm() says, and
        for DTensors.
    """
    return _product(gate, up, _SILU)


def geglu(gate: Tensor, up: Tensor, approximate: str = "none") -> Tensor:
    """gelu(gate) * up in one kernel: the gated layer of Gemma (approximate="tanh").

    gate, up: as swiglu() takes them. approximate: "none" (by erf) or "tanh".
    """
    number = _NUMBERS.get(approximate)
    if number is None:
        return functional.gelu(gate, approximate=approximate) * up  # which raises torch's error
    return _product(gate, up, number)


def _product(gate: Tensor, up: Tensor, number: int) -> Tensor:
    y = _gated_calls[number](None, gate, up) if gate.shape == up.shape else NotImplemented
    return y if y is not NotImplemented else _activated(gate, number) * up
