"""Operators of PyTorch's dispatcher, when they apply, and the shorter way to their kernels."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from .. import _torch_private as private
from ..errors import InvalidArgumentError
from ._access import PLAIN, access
from ._variants import Call

library = torch.library.Library("cubind", "DEF")

HALF = (torch.bfloat16, torch.float16)

stream_of = private.stream_of


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """In float32 where it is narrower: what a formula computes in."""
    return tensor.float() if tensor.dtype in HALF else tensor


def contiguous_like(tensor: torch.Tensor) -> torch.Tensor:
    """An empty tensor of the same shape, in C order."""
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def statistics(x: torch.Tensor) -> torch.Tensor:
    """An empty tensor with one value for each row, in float32 or the wider type of x."""
    return x.new_empty(x.shape[:-1], dtype=torch.promote_types(x.dtype, torch.float32))


def applies(*tensors: torch.Tensor | None) -> bool:
    """Whether the operators are for these: plain tensors in GPU memory (no DTensor, no other subclass), and
    neither autocast, which has rules of its own for torch's operators, nor forward-mode gradients or a
    transform of torch.func. Raises InvalidArgumentError for tensors of several devices."""
    if not (_are_plain(tensors) and not torch.is_autocast_enabled("cuda")):
        return False
    if torch.compiler.is_compiling():  # which looks at the devices itself
        return True
    check_one_device(tensors)
    return not private.is_transformed()


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


def is_quiet() -> bool:
    """Whether a call of the kernel itself does what a call through the dispatcher would: no compiler,
    autocast, dispatch mode, transform or tracer is active. The dispatcher takes more host time than the
    launch."""
    return not torch.compiler.is_compiling() and access.is_quiet()


def is_direct(*tensors: torch.Tensor | None) -> bool:
    """is_quiet(), and the operators are for these tensors. Raises InvalidArgumentError for tensors of several
    devices."""
    if not (is_quiet() and _are_plain(tensors)):
        return False
    check_one_device(tensors)
    return True


Gradients = tuple[torch.Tensor | None, ...]


@dataclasses.dataclass(frozen=True)
class Backward:
    """The kernel whose outputs are the gradients of a call, all of them, which a backward pass calls without
    the dispatcher. call: it takes the last numbers of that call. places: of each of its tensors among the
    saved ones, and -1 for the slope. needed: no call with gradients is direct unless this kernel is there."""

    call: Call
    places: tuple[int, ...]
    needed: bool = False


def no_derivative(what: str) -> NotImplementedError:
    """The error where a backward pass that cannot be differentiated is."""
    return NotImplementedError(
        f"{what}: use torch's own function where a backward pass is differentiated (create_graph=True)"
    )


class Dispatched:
    """An operator of the dispatcher, and a call of it by the shorter way where that is the same."""

    def __init__(
        self,
        schema: str,
        cuda: Callable[..., Any],
        formula: Callable[..., Any],
        fake: Callable[..., Any],
        tensors: int,
    ) -> None:
        """What it does on a GPU and on the CPU, and what its results look like. tensors: how many of its
        inputs are some."""
        name = schema.partition("(")[0]
        library.define(schema)
        library.impl(name, cuda, "CUDA")
        library.impl(name, formula, "CPU")
        torch.library.register_fake(f"cubind::{name}", fake, lib=library)
        self._name = f"cubind::{name}"
        self._cuda = cuda
        self._formula = formula
        self._tensors = tensors
        self._save: Callable[..., None] = self._save_inputs
        self._backward: Callable[..., Gradients] = self._refuse
        torch.library.register_autograd(
            self._name,
            self._run_backward,
            setup_context=self._run_save,
            lib=library,
        )
        self._operator = getattr(torch.ops.cubind, name).default
        self._apply: Callable[..., Any] = cuda

    def differentiate_by_formula(self) -> None:
        """Gives an operator that computes gradients the derivatives of its formula, for a backward pass that
        is differentiated too. Its inputs must have gradients: a saved result without them, like the scale of
        a row, would leave a term out. By default such a pass raises NotImplementedError."""
        self._backward = self._differentiate_formula

    # Registered once, by the constructor: differentiate() comes later.
    def _run_save(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        self._save(ctx, inputs, output)

    def _run_backward(self, ctx: Any, *slopes: Any) -> Gradients:
        return self._backward(ctx, *slopes)

    def _save_inputs(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs[: self._tensors])
        ctx.others = inputs[self._tensors :]

    def _refuse(self, ctx: Any, *slopes: Any) -> Gradients:
        raise no_derivative(f"{self._name} has no derivative")

    def _differentiate_formula(self, ctx: Any, *slopes: torch.Tensor) -> Gradients:
        again = torch.is_grad_enabled()
        with torch.enable_grad():
            # The saved tensors may depend on each other, views of them do not.
            given = [tensor.view_as(tensor) for tensor in ctx.saved_tensors]
            found = self._formula(*given, *ctx.others)
        results = found if isinstance(found, tuple) else (found,)
        outputs, theirs = zip(*((y, slope) for y, slope in zip(results, slopes) if y.requires_grad))
        needed = [tensor for tensor in given if tensor.requires_grad]
        gradients = iter(torch.autograd.grad(outputs, needed, theirs, create_graph=again, allow_unused=True))
        return (
            *(next(gradients) if tensor.requires_grad else None for tensor in given),
            *(None for _ in ctx.others),
        )

    def differentiate(
        self,
        saved: tuple[int, ...],
        gradients: Callable[..., Gradients],
        *calls: tuple[Call, Backward | None],
        outputs: int = 1,
    ) -> None:
        """Gives it and the calls of its kernel gradients: those of the first outputs, as many as are said
        (calls: of the first alone); the others have none. saved: which of the input and output tensors
        gradients(ctx, *slopes) finds in ctx.saved_tensors; the inputs that are no tensors are in ctx.others.
        It returns a gradient for each tensor. A call may lack the operator's last tensors."""

        def save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            results = output if isinstance(output, tuple) else (output,)
            tensors = (*inputs[: self._tensors], *results)
            ctx.save_for_backward(*(tensors[i] for i in saved))
            ctx.others = inputs[self._tensors :]
            ctx.mark_non_differentiable(*results[outputs:])

        def forward(ctx: Any, *inputs: Any) -> Any:
            output = self._cuda(*inputs)
            save(ctx, inputs, output)
            return output

        def backward(ctx: Any, *slopes: Any) -> Gradients:
            return (*gradients(ctx, *slopes[:outputs]), *(None for _ in ctx.others))

        self._save, self._backward = save, backward
        if not private.is_known:  # then no call is direct
            return
        self._apply = private.applied(self._name, forward, backward)
        for call, kernel in calls:
            self.differentiate_call(call, saved, gradients, kernel)

    def differentiate_call(
        self,
        call: Call,
        saved: tuple[int, ...],
        gradients: Callable[..., Gradients],
        kernel: Backward | None = None,
    ) -> None:
        """Gives a call gradients of its own, as differentiate() says; by the kernel where it is there."""
        if private.is_known:  # else no call is direct
            own = tuple(i if i < self._tensors else i - self._tensors + call.inputs for i in saved)
            also = kernel.call.native if kernel is not None and kernel.needed else None
            call.native.differentiate(_differentiated(self._name, call, gradients, kernel), own, also)

    def __call__(self, *inputs: Any) -> Any:
        """Through the dispatcher, unless the kernel itself does the same and no gradients are needed."""
        if not torch.is_grad_enabled() and is_direct(*inputs[: self._tensors]):
            return self._cuda(*inputs)
        return self._operator(*inputs)

    def direct(self, needs_gradients: bool, *inputs: Any) -> Any:
        """The same where is_direct() holds for its tensors."""
        return self._apply(*inputs) if needs_gradients and torch.is_grad_enabled() else self._cuda(*inputs)


# From a call's constants and numbers to a Function's apply(), whose inputs are the operator's first ones.
def _differentiated(
    name: str, call: Call, gradients: Callable[..., Gradients], kernel: Backward | None
) -> Callable[[tuple[Any, ...]], Callable[..., Any]]:
    def backward(ctx: Any, slope: torch.Tensor) -> Gradients:
        return gradients(ctx, slope)[: call.inputs]

    def differentiated(others: tuple[Any, ...]) -> Callable[..., Any]:
        quick = None if kernel is None else _by_kernel(kernel, others, backward)
        return private.applied(name, call.native.forward, backward, others, quick)

    return differentiated


class _Unpacked(NamedTuple):
    """What gradients() reads of ctx. A saved tensor is unpacked once: a hook may compute it."""

    saved_tensors: tuple[torch.Tensor, ...]
    needs_input_grad: tuple[bool, ...]
    others: tuple[Any, ...]


# The backward pass by its kernel; by `longer` where that is not known, or not the same.
def _by_kernel(
    kernel: Backward, others: tuple[Any, ...], longer: Callable[..., Gradients]
) -> Callable[..., Gradients]:
    launch, in_order = kernel.call.native.gradients, operator.itemgetter(*kernel.places)
    numbers = others[len(others) - kernel.call.numbers :]

    def quick(ctx: Any, slope: torch.Tensor) -> Gradients:
        saved, needed = ctx.saved_tensors, ctx.needs_input_grad
        found = launch(needed, *in_order((*saved, slope)), *numbers)
        return longer(_Unpacked(saved, needed, others), slope) if found is None else found

    return quick
