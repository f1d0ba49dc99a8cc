"""Operators of PyTorch's dispatcher, and their gradients."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import _torch_private as private
from ._call import Call, Tensors, access, are_plain
from ._variants import Need

library = torch.library.Library("cubind", "DEF")

Gradients = tuple[Tensor | None, ...]
Ahead = Callable[[Need, Tensors], Iterable[Need]]


def is_quiet() -> bool:
    """Whether a call of the kernel itself does what a call through the dispatcher would: no compiler,
    autocast, dispatch mode, transform or tracer is active. The dispatcher takes more host time than the
    launch."""
    return not torch.compiler.is_compiling() and access.is_quiet()


def no_derivative(what: str) -> NotImplementedError:
    """The error where a backward pass that cannot be differentiated is."""
    return NotImplementedError(
        f"{what}: use torch's own function where a backward pass is differentiated (create_graph=True)"
    )


class Dispatched:
    """An operator of the dispatcher.

    schema: its tensors first, then the constants of its calls, then their numbers. calls: of its kernel, told
    apart by the number of tensors (the last may be optional) and the constants. formula: what it computes, by
    torch's functions. make: the call for other constants, with all tensors. distributed: the name of a
    function and those of its tensors, if DTensors may be given. cuda, fake: what it does on a GPU and what
    its results look like, if the calls do not say so.
    """

    def __init__(
        self,
        schema: str,
        calls: Iterable[Call],
        formula: Callable[..., Any],
        *,
        make: Callable[..., Call] | None = None,
        distributed: tuple[str, ...] = (),
        cuda: Callable[..., Any] | None = None,
        fake: Callable[..., Any] | None = None,
    ) -> None:
        name, _, arguments = schema.partition(" ->")[0].partition("(")
        self.tensors = arguments.count("Tensor")
        self.others = arguments.count(",") + 1 - self.tensors
        self.formula = formula
        self.distributed = distributed
        self.needs_kernels = False
        self._name = f"cubind::{name}"
        self._calls: dict[tuple[Any, ...], Call] = {}
        self._make = make
        self._making = threading.Lock()
        self._constants = 0
        self._direct: Callable[[Call], None] | None = None  # gives a call gradients
        for call in calls:
            self._add(call)
        self._cuda = cuda or self._by_call
        self._ahead: Ahead | None = None
        self._by: Dispatched | None = None
        self._save: Callable[..., None] = self._save_inputs
        self._backward: Callable[..., Gradients] = self._refuse
        library.define(schema)
        library.impl(name, self._cuda, "CUDA")
        library.impl(name, formula, "CPU")
        torch.library.register_fake(self._name, fake or self._fake, lib=library)
        torch.library.register_autograd(
            self._name, self._run_backward, setup_context=self._run_save, lib=library
        )
        self._operator = getattr(torch.ops.cubind, name).default

    def __call__(self, *inputs: Any) -> Any:
        """Through the dispatcher, unless the kernel itself does the same and no gradients are needed."""
        if not torch.is_grad_enabled() and is_quiet() and are_plain(inputs[: self.tensors]):
            return self._cuda(*inputs)
        return self._operator(*inputs)

    # ---- By its calls ----

    def _add(self, call: Call) -> Call:
        call.op = self
        self._constants = len(call.constants)
        if self._direct is not None:
            self._direct(call)
        self._calls[(call.inputs, *call.constants)] = call
        return call

    def _find(self, tensors: int, constants: tuple[Any, ...]) -> Call:
        key = (tensors, *constants)
        if self._make is not None and key not in self._calls:
            with self._making:
                if key not in self._calls:
                    self._add(self._make(*constants))
        return self._calls[key]

    def call(self, *constants: Any) -> Call:
        """The call with all tensors and these constants."""
        return self._find(self.tensors, constants)

    # The call, and what it is given.
    def _call_of(self, inputs: tuple[Any, ...]) -> tuple[Call, tuple[Any, ...]]:
        tensors = tuple(tensor for tensor in inputs[: self.tensors] if tensor is not None)
        numbers = self.tensors + self._constants
        call = self._find(len(tensors), inputs[self.tensors : numbers])
        return call, (*tensors, *inputs[numbers:])

    def _by_call(self, *inputs: Any) -> Any:
        call, given = self._call_of(inputs)
        outputs = call.run(*given)
        return self.formula(*inputs) if outputs is None else outputs

    def _fake(self, *inputs: Any) -> Any:
        call, given = self._call_of(inputs)
        return call.fake(*given[: call.inputs])

    # ---- Gradients ----

    def differentiate_by_formula(self) -> None:
        """Gives an operator that computes gradients the derivatives of its formula, for a backward pass that
        is differentiated too. Its inputs must have gradients: a saved result without them, like the scale of
        a row, would leave a term out. By default such a pass raises NotImplementedError."""
        self._backward = self._differentiate_formula

    def differentiate(
        self,
        saved: tuple[int, ...],
        gradients: Dispatched | Callable[..., Gradients],
        *,
        outputs: int = 1,
        ahead: Ahead | None = None,
        needs_kernels: bool = False,
    ) -> None:
        """Gives it and its calls gradients: those of the first outputs, as many as are said; the others have
        none.

        saved: which of the input and output tensors the backward pass needs. gradients: the operator that
        computes them from the slopes, the saved tensors and the inputs that are no tensors, as many as it
        takes; or a function of (ctx, *slopes), with ctx.saved_tensors and ctx.others, that returns a gradient
        for each tensor. ahead: the kernels that the backward pass will need; None: that of the operator.
        needs_kernels: without them the forward pass is torch's own too.
        """
        self._by = gradients if isinstance(gradients, Dispatched) else None
        self._ahead = ahead
        self.needs_kernels = needs_kernels
        compute = gradients._gradients if isinstance(gradients, Dispatched) else gradients

        def save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            results = output if isinstance(output, tuple) else (output,)
            tensors = (*inputs[: self.tensors], *results)
            ctx.save_for_backward(*(tensors[i] for i in saved))
            ctx.others = inputs[self.tensors :]
            ctx.mark_non_differentiable(*results[outputs:])

        def backward(ctx: Any, *slopes: Any) -> Gradients:
            return _padded(compute(ctx, *slopes[:outputs]), self.tensors + self.others)

        self._save, self._backward = save, backward
        if private.is_known:  # else no call is direct
            self._direct = lambda call: self._differentiate_call(call, saved, compute)
            for call in self._calls.values():
                self._direct(call)

    def ahead(self, call: Call, need: Need, tensors: Tensors) -> list[Need]:
        """The kernels of the backward pass of a call, whose own kernel is `need`."""
        if self._ahead is not None:
            return list(self._ahead(need, tensors))
        kernel = self._kernel_of(call)
        return [] if kernel is None else [kernel.at(need)]

    # The kernel whose outputs are the gradients of a call, all of them.
    def _kernel_of(self, call: Call) -> Call | None:
        if self._by is not None and self._by._make is not None:
            return self._by.call(*call.constants)
        calls = self._by._calls.values() if self._by is not None else ()
        return next((one for one in calls if one.constants == call.constants), None)

    # Of another operator, whose backward pass this one is.
    def _gradients(self, ctx: Any, *slopes: Any) -> Gradients:
        found = self(*slopes, *ctx.saved_tensors, *ctx.others[: self.others])
        given = found if isinstance(found, tuple) else (found,)
        return tuple(g if needed else None for g, needed in zip(given, ctx.needs_input_grad))

    def _differentiate_call(
        self, call: Call, saved: tuple[int, ...], gradients: Callable[..., Gradients]
    ) -> None:
        kernel = self._kernel_of(call)

        def backward(ctx: Any, *slopes: Any) -> Gradients:
            return _padded(gradients(ctx, *slopes), call.inputs)

        # From a call's constants and numbers to a Function's apply(), whose inputs are the call's tensors.
        def differentiated(others: tuple[Any, ...]) -> Callable[..., Any]:
            quick = None if kernel is None else _by_kernel(kernel, others, backward)
            return private.applied(self._name, call.native.forward, backward, others, quick)

        own = tuple(i if i < self.tensors else i - self.tensors + call.inputs for i in saved)
        needed = kernel.native if kernel is not None and self.needs_kernels else None
        call.native.differentiate(differentiated, own, needed)

    # Registered once, by the constructor: differentiate() comes later.
    def _run_save(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        self._save(ctx, inputs, output)

    def _run_backward(self, ctx: Any, *slopes: Any) -> Gradients:
        return self._backward(ctx, *slopes)

    def _save_inputs(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs[: self.tensors])
        ctx.others = inputs[self.tensors :]

    def _refuse(self, ctx: Any, *slopes: Any) -> Gradients:
        raise no_derivative(f"{self._name} has no derivative")

    def _differentiate_formula(self, ctx: Any, *slopes: Tensor) -> Gradients:
        again = torch.is_grad_enabled()
        with torch.enable_grad():
            # The saved tensors may depend on each other, views of them do not.
            given = [tensor.view_as(tensor) for tensor in ctx.saved_tensors]
            found = self.formula(*given, *ctx.others)
        results = found if isinstance(found, tuple) else (found,)
        outputs, theirs = zip(*((y, slope) for y, slope in zip(results, slopes) if y.requires_grad))
        needed = [tensor for tensor in given if tensor.requires_grad]
        gradients = iter(torch.autograd.grad(outputs, needed, theirs, create_graph=again, allow_unused=True))
        return (
            *(next(gradients) if tensor.requires_grad else None for tensor in given),
            *(None for _ in ctx.others),
        )


def _padded(gradients: Gradients, count: int) -> Gradients:
    return (*gradients[:count], *(None,) * (count - len(gradients)))


class _Unpacked(NamedTuple):
    """What gradients() reads of ctx. A saved tensor is unpacked once: a hook may compute it."""

    saved_tensors: tuple[Tensor, ...]
    needs_input_grad: tuple[bool, ...]
    others: tuple[Any, ...]


# The backward pass by its kernel; by `longer` where that is not known, or not the same.
def _by_kernel(
    kernel: Call, others: tuple[Any, ...], longer: Callable[..., Gradients]
) -> Callable[..., Gradients]:
    launch, numbers = kernel.native.gradients, others[len(others) - len(kernel.numbers) :]

    def quick(ctx: Any, slope: Tensor) -> Gradients:
        saved, needed = ctx.saved_tensors, ctx.needs_input_grad
        found = launch(needed, slope, *saved, *numbers)
        return longer(_Unpacked(saved, needed, others), slope) if found is None else found

    return quick
