"""A call of a kernel: from tensors to the launch, or to torch's own function."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.compiler import is_compiling, is_dynamo_compiling

from .. import _core
from .. import _torch_private as private
from .._switch import IS_OFF
from .._torch_access import DTYPES, PLAIN, fields
from ..errors import InvalidArgumentError
from ._dtensor import are_distributed, run_locally
from ._tensors import aligned, empty_as, ordered_as, row_stride
from ._variants import TYPES, Key, Loaded, Need, current

if TYPE_CHECKING:
    from ._operator import Operator

access = _core.Torch(fields(autocast=True))  # which has rules of its own for torch's operators
Tensors = tuple[Tensor, ...]


class Pattern:
    """The shape of a tensor in the dims of its kernel, as python/extension/shape_pattern.hpp describes it."""

    def __init__(self, text: str) -> None:
        words = text.split()
        self.axes = [word.rstrip("*") for word in words if word[0].isupper() or word.isdigit()]
        self.has_star = "*" in text
        self.dtype = next((DTYPES[word] for word in words if word in DTYPES), None)
        self.has_rows = "rows" in words
        self.like = next((int(word[3:]) for word in words if word.startswith("as:")), None)

    def sizes(self, tensor: Tensor) -> dict[str, tuple[int, ...]]:
        """By the names of the axes: one size, several where the star stands."""
        shape = tuple(tensor.shape)
        starred = len(shape) - len(self.axes) + 1 if self.has_star else 1
        found = {self.axes[0]: shape[:starred]} if self.axes else {}
        for name, size in zip(self.axes[1:], shape[starred:]):
            found[name] = (size,)
        return found

    def has_rank(self, tensor: Tensor) -> bool:
        rank = len(self.axes)
        return tensor.dim() + 1 >= rank if self.has_star else tensor.dim() == rank


class Call:
    """A kernel with certain values of its flags, as an operator calls it.

    operator: its kernel. inputs, outputs: the patterns of the tensors by the names that the kernel's spec has
    for them; the inputs in the order in which the operator has them. numbers: the arguments that follow, with
    typical values. flags: the kernel's; constants: what the operator has instead, between its tensors and
    numbers. returned: how many outputs a caller gets. takes: whether there can be a kernel for tensors that
    fit the patterns. op: the operator of the dispatcher.
    """

    def __init__(
        self,
        operator: Operator,
        inputs: Mapping[str, str],
        outputs: Mapping[str, str],
        numbers: Mapping[str, float],
        flags: tuple[int, ...],
        constants: tuple[Any, ...],
        returned: int,
        takes: Callable[..., bool] | None,
    ) -> None:
        self.operator = operator
        self.inputs = len(inputs)
        self.numbers = tuple(numbers.values())
        self.flags = flags
        self.constants = constants
        self.op: Any = None
        self.patterns = [Pattern(text) for text in inputs.values()]
        self._out = [Pattern(text) for text in outputs.values()]
        rows = [f"{name}_row" for name, pattern in zip(inputs, self.patterns) if pattern.has_rows]
        self.names = (*inputs, *outputs, *numbers, *rows)
        shapes = tuple(inputs.values()), tuple(outputs.values())
        self.native = _core.OperatorCall(
            access, operator.dims, *shapes, operator.known, len(numbers), constants, returned, ()
        )
        self._direct = self.native.direct
        self._launch = self.native.launch
        self._returned = returned
        self._takes = takes

    def __call__(self, sizes: Any, *given: Any) -> Any:
        """The returned outputs for these tensors and numbers, with gradients if they are needed.
        NotImplemented: torch's own function takes its place. sizes: what has to be the size of the first
        tensor's last dim as a sequence; None: anything."""
        if not is_dynamo_compiling():
            found = self._direct(sizes, *given)
            if found is not None:
                return found
        return self._longer(sizes, given)

    def either(self, *given: Any) -> Any:
        """The same, by torch's functions if there is no kernel."""
        found = self(None, *given)
        return (
            self._returned_of(self.op.formula(*self._operands(given))) if found is NotImplemented else found
        )

    def run(self, *given: Any) -> Any:
        """All outputs, without gradients. None: there is no kernel."""
        found = self._launch(*given)
        if found is None:
            need = self.need(*given[: self.inputs])
            if need is not None and need.operator.available(need.key, need.dims):
                found = self._launch(*self._arranged(given))
                need.operator.fallbacks += found is None
        return None if found is NotImplemented else found

    def need(self, *tensors: Tensor) -> Need | None:
        """The kernel for these tensors, however they lie in memory. None: there can be none."""
        found = self.native.problem(*tensors)
        if found is None or (self._takes is not None and not self._takes(*tensors)):
            return None
        dtype, device, known, dims = found
        return Need(self.operator, (dtype, device, self.flags, known), dims)

    def at(self, other: Need, *dims: int) -> Need:
        """The kernel for the type and GPU of another one, and these dims; without any for the same ones."""
        dtype, device, *_ = other.key
        values = dims or other.dims
        known = tuple(values[self.operator.dims.index(name)] for name in self.operator.known)
        return Need(self.operator, (dtype, device, self.flags, known), values)

    def fake(self, *tensors: Tensor) -> Any:
        """Empty outputs, by the shapes alone."""
        sizes: dict[str, tuple[int, ...]] = {}
        for pattern, tensor in zip(self.patterns, tensors):
            sizes.update(pattern.sizes(tensor))
        given = (t.dtype for pattern, t in zip(self.patterns, tensors) if pattern.dtype is None)
        dtype = next(given, self._out[0].dtype)
        outputs = tuple(_made(pattern, sizes, tensors, dtype) for pattern in self._out)
        return outputs if len(outputs) > 1 else outputs[0]

    # ---- What the operator knows of the kernel's variants ----

    def know(self, key: Key, variants: tuple[Loaded, ...]) -> None:
        """The variants of the key, from now on; none of them: there is no kernel."""
        dtype, device, _, known = key
        triples = [(one.kernel, one.order, one.yields) for one in variants]
        self.native.know(TYPES[dtype], device, known, triples)

    def forget(self, key: Key) -> None:
        """Whether there is a kernel is not known any more."""
        dtype, device, _, known = key
        self.native.forget(TYPES[dtype], device, known)

    # ---- The slow way ----

    def _longer(self, sizes: Any, given: tuple[Any, ...]) -> Any:
        tensors = given[: self.inputs]
        is_other_size = sizes is not None and tuple(sizes) != tuple(tensors[0].shape[-1:])
        if IS_OFF or is_other_size or any(value is None for value in given):
            return NotImplemented
        if not are_plain(tensors):
            return self._distributed(given) if are_distributed(*tensors) else NotImplemented
        if torch.is_autocast_enabled("cuda"):  # which has rules of its own for torch's operators
            return NotImplemented
        if is_compiling():  # which looks at the devices itself
            return self._dispatched(given) if self._fit(tensors) else NotImplemented
        return self._asked(given, tensors)

    def _asked(self, given: tuple[Any, ...], tensors: Tensors) -> Any:
        check_one_device(tensors)
        need = None if private.is_transformed() else self.need(*tensors)
        if need is None or not self._is_there(need, tensors):
            return NotImplemented
        found = self._direct(None, *self._arranged(given))
        return self._dispatched(given) if found is None else found

    # If gradients are needed, the kernels of the backward pass are asked for at the same time.
    def _is_there(self, need: Need, tensors: Tensors) -> bool:
        needs = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        backward = current.collection.backward if current.collection is not None else needs
        ahead = self.op.ahead(self, need, tensors) if backward else []
        if backward and not need.operator.knows(need.key):
            for operator, key, dims in (need, *ahead):
                operator.ask_ahead(key, dims)
        if not need.operator.available(need.key, need.dims):
            return False
        return not (needs and self.op.needs_kernels) or all(
            operator.available(key, dims) for operator, key, dims in ahead
        )

    def _arranged(self, given: tuple[Any, ...]) -> tuple[Any, ...]:
        tensors: list[Tensor] = []
        for pattern, tensor in zip(self.patterns, given):
            if pattern.like is not None:
                tensors.append(aligned(ordered_as(tensor, given[pattern.like])))
            else:
                is_read = pattern.has_rows and row_stride(tensor) is not None
                tensors.append(aligned(tensor if is_read else tensor.contiguous()))
        return (*tensors, *given[self.inputs :])

    def _dispatched(self, given: tuple[Any, ...]) -> Any:
        return self._returned_of(self.op(*self._operands(given)))

    def _returned_of(self, outputs: Any) -> Any:
        results = outputs if isinstance(outputs, tuple) else (outputs,)
        return results[0] if self._returned == 1 else results[: self._returned]

    # As the operator of the dispatcher takes them.
    def _operands(self, given: tuple[Any, ...]) -> tuple[Any, ...]:
        tensors, numbers = given[: self.inputs], given[self.inputs :]
        return (*tensors, *itertools.repeat(None, self.op.tensors - self.inputs), *self.constants, *numbers)

    # Like native.problem(), for sizes that may be symbols.
    def _fit(self, tensors: Tensors) -> bool:
        found: dict[str, tuple[int, ...]] = {}
        dtype = None
        for pattern, tensor in zip(self.patterns, tensors):
            if not pattern.has_rank(tensor):
                return False
            if pattern.dtype is None and dtype is None:
                dtype = tensor.dtype
            if tensor.dtype != (pattern.dtype or dtype):
                return False
            for name, size in pattern.sizes(tensor).items():
                if name not in found:
                    found[name] = size
                elif found[name] != size:
                    return False
        return True

    # Tensors with a star are rows, which the ranks may have shares of.
    def _distributed(self, given: tuple[Any, ...]) -> Any:
        if not self.op.distributed:
            return NotImplemented
        name, *arguments = self.op.distributed
        tensors = dict(zip(arguments, given[: self.inputs]))
        rows = [argument for argument, pattern in zip(arguments, self.patterns) if pattern.has_star]
        inputs = {argument: tensors.pop(argument) for argument in rows}

        def local(*own: Tensor) -> Any:
            return self.either(*own, *given[self.inputs :])

        return run_locally(name, local, inputs, len(self.patterns[0].axes) - 1, tensors)


def _made(
    pattern: Pattern, sizes: Mapping[str, tuple[int, ...]], tensors: Tensors, dtype: torch.dtype
) -> Tensor:
    if pattern.like is not None:
        return empty_as(tensors[pattern.like])
    shape = [size for name in pattern.axes for size in sizes[name]]
    return tensors[0].new_empty(
        shape, dtype=dtype if pattern.dtype is None else torch.promote_types(dtype, pattern.dtype)
    )


def are_plain(tensors: tuple[Any, ...]) -> bool:
    """Whether they are tensors in GPU memory and nothing more: no DTensor, no other subclass."""
    return all(tensor is None or (type(tensor) in PLAIN and tensor.is_cuda) for tensor in tensors)


def check_one_device(tensors: Tensors) -> None:
    """Raises InvalidArgumentError unless they lie on one device."""
    devices = {tensor.device for tensor in tensors}
    if len(devices) > 1:
        found = " and ".join(sorted(map(str, devices)))
        raise InvalidArgumentError(
            f"they lie on {found}, an operator runs on one device: move them with .to()", "tensors"
        )
