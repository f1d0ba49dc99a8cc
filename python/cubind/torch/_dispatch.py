"""Operators of PyTorch's dispatcher, when they apply, and the shorter way to their kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import forward_ad

from ..errors import InvalidArgumentError

library = torch.library.Library("cubind", "DEF")

HALF = (torch.bfloat16, torch.float16)
PLAIN = (torch.Tensor, torch.nn.Parameter)

# From a device's ordinal to its current stream; a build of torch without CUDA has none, and calls none.
stream_of: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 0)


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """In float32 where it is narrower: what a formula computes in."""
    return tensor.float() if tensor.dtype in HALF else tensor


def contiguous_like(tensor: torch.Tensor) -> torch.Tensor:
    """An empty tensor of the same shape, in C order."""
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def applies(*tensors: torch.Tensor | None) -> bool:
    """Whether the operators are for these: plain tensors in GPU memory (no DTensor, no other subclass), and neither autocast,
    which has rules of its own for torch's operators, nor forward-mode gradients or a transform of torch.func. Raises
    InvalidArgumentError for tensors of several devices."""
    if not (_are_plain(tensors) and not torch.is_autocast_enabled("cuda")):
        return False
    if torch.compiler.is_compiling():  # which looks at the devices itself
        return True
    check_one_device(tensors)
    return not (forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active())


def _are_plain(tensors: tuple[torch.Tensor | None, ...]) -> bool:
    for tensor in tensors:
        if tensor is not None and not (type(tensor) in PLAIN and tensor.is_cuda):
            return False
    return True


def check_one_device(tensors: tuple[torch.Tensor | None, ...]) -> None:
    """Raises InvalidArgumentError unless they lie on one device."""
    devices = {tensor.device for tensor in tensors if tensor is not None}
    if len(devices) > 1:
        found = " and ".join(sorted(map(str, devices)))
        raise InvalidArgumentError(
            f"they lie on {found}, an operator runs on one device: move them with .to()", "tensors"
        )


# ---- The shorter way ----

# Each takes a tenth of a microsecond or less.
_dispatch_modes = torch._C._len_torch_dispatch_stack
_transforms = torch._C._are_functorch_transforms_active
_tracing = torch._C._get_tracing_state
_autocast = torch._C._is_any_autocast_enabled


def is_quiet() -> bool:
    """Whether a call of the kernel itself does what a call through the dispatcher would: no compiler, autocast, dispatch mode,
    transform or tracer looks on. The dispatcher takes more host time than the launch."""
    if torch.compiler.is_compiling() or _dispatch_modes() or _transforms() or _autocast() or _tracing():
        return False
    return forward_ad._current_level < 0


def is_direct(*tensors: torch.Tensor | None) -> bool:
    """is_quiet(), and the operators are for these tensors. Raises InvalidArgumentError for tensors of several devices."""
    if not (is_quiet() and _are_plain(tensors)):
        return False
    check_one_device(tensors)
    return True


class Dispatched:
    """An operator of the dispatcher, and a call of it by the shorter way where that is the same."""

    def __init__(
        self, schema: str, cuda: Callable[..., Any], formula: Callable[..., Any], fake: Callable[..., Any]
    ) -> None:
        """What it does on a GPU and on the CPU, and what its results look like."""
        name = schema.partition("(")[0]
        library.define(schema)
        library.impl(name, cuda, "CUDA")
        library.impl(name, formula, "CPU")
        torch.library.register_fake(f"cubind::{name}", fake, lib=library)
        self._name = f"cubind::{name}"
        self._cuda = cuda
        self._operator = getattr(torch.ops.cubind, name).default
        self._apply: Callable[..., Any] = cuda

    def differentiate(self, save: Callable[..., Any], gradients: Callable[..., Any]) -> None:
        """Gives it gradients: save(ctx, inputs, output), gradients(ctx, *gradients of the outputs)."""
        torch.library.register_autograd(self._name, gradients, setup_context=save, lib=library)

        def forward(ctx: Any, *inputs: Any) -> Any:
            output = self._cuda(*inputs)
            save(ctx, inputs, output)
            return output

        body = {"forward": staticmethod(forward), "backward": staticmethod(gradients)}
        function = type(self._name, (torch.autograd.Function,), body)
        # Below Function.apply(), which looks for transforms: is_quiet() has.
        self._apply = super(torch.autograd.Function, function).apply

    def __call__(self, *inputs: Any) -> Any:
        """Through the dispatcher."""
        return self._operator(*inputs)

    def direct(self, needs_gradients: bool, *inputs: Any) -> Any:
        """The same where is_direct() holds for its tensors."""
        return self._apply(*inputs) if needs_gradients and torch.is_grad_enabled() else self._cuda(*inputs)
