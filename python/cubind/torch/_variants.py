"""The variants behind the operators: found once, launched without a look at the daemon, replaced only by
step()."""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
import weakref
from typing import Any

import torch

from .. import _core, _fork, connect
from .._loading import load
from ..client import Client, Question
from ..errors import CubindError, InvalidArgumentError
from ._access import access

_MAX_VARIANTS = 64  # of one key
_ALIGNED = 16  # bytes: what no kernel asks more than
TYPES = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32"}


def has_kernel(x: torch.Tensor, *others: torch.Tensor) -> bool:
    """Whether variants take `x` and what goes with it: a type of theirs, the same for all on one GPU, and
    not empty."""
    same = all(other.dtype == x.dtype and other.device == x.device for other in others)
    return x.dtype in TYPES and same and x.numel() > 0


# (type, device, values of the flags, values of the dims that tell variants apart): what Operator.launch()
# finds by.
Key = tuple[torch.dtype, int, tuple[int, ...], tuple[int, ...]]


class Settings:
    """strict: a kernel that is not there raises, where otherwise torch's formula takes its place with one
    warning; by default only in a job of several ranks, which must not diverge in silence. client: None
    connects when the first kernel is needed."""

    def __init__(self) -> None:
        self.strict = int(os.environ.get("WORLD_SIZE", "1")) > 1
        self.client: Client | None = None


settings = Settings()


class _Loaded:
    """A loaded variant. order: the place of each of its parameters in the operator's arguments, -1 for a
    scratch buffer; None where they are the operator's arguments as they stand."""

    def __init__(self, kernel: _core.Kernel, arguments: tuple[str, ...]) -> None:
        parameters = kernel.parameters()
        names = tuple(parameter[0] for parameter in parameters)
        for name, _, _, role in parameters:
            if name not in arguments and role != "scratch":
                raise InvalidArgumentError(
                    f"the operator has no such argument (it has {', '.join(arguments)})", name
                )
        self.kernel = kernel
        self.names = names
        self.launch = kernel.launch
        self.extents = kernel.extents
        self.order = None if names == arguments else order_of(names, arguments)

    def arguments_for(self, dims: tuple[int, ...], given: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """The given ones in the variant's order, with scratch buffers; None where the variant does not hold
        for these dims."""
        order = self.order
        if order is None:
            return given
        extents = self.extents(dims) if -1 in order else order
        if extents is None:
            return None
        like = given[0]
        return tuple(
            _scratch(like, extent) if place < 0 else given[place] for place, extent in zip(order, extents)
        )


def order_of(names: tuple[str, ...], arguments: tuple[str, ...]) -> tuple[int, ...]:
    """The place of each name in the arguments, -1 where it is none."""
    return tuple(arguments.index(name) if name in arguments else -1 for name in names)


def _scratch(like: torch.Tensor, extent: int) -> torch.Tensor | int:
    return like.new_empty(extent, dtype=torch.uint8) if extent else 0


class Call:
    """A kernel with given values of its flags, called without a line of Python where its variant is known and
    the tensors are as it takes them. launch(*tensors, *numbers) gives the output, a tuple where there are
    several, or None; direct(sizes, *tensors,
    *numbers) too, with gradients where they are needed, but the first output alone (see _core.pyi)."""

    def __init__(
        self, native: _core.OperatorCall, inputs: int, numbers: int, arguments: tuple[str, ...]
    ) -> None:
        self.native = native
        self.inputs = inputs
        self.numbers = numbers
        self.launch = native.launch
        self.direct = native.direct
        self._arguments = arguments

    def know(self, key: Key, variants: tuple[_Loaded, ...]) -> None:
        """The variants of the key, from now on."""
        dtype, device, _, known = key
        pairs = [(one.kernel, order_of(one.names, self._arguments)) for one in variants]
        self.native.know(TYPES[dtype], device, known, pairs)


class Operator:
    """Launches one kernel. dims, flags: the spec's names. arguments: the spec's names in the order in which
    launch() is given them, a tensor first; scratch buffers are none of them. Safe on many threads."""

    def __init__(
        self, kernel: str, dims: tuple[str, ...], arguments: tuple[str, ...], flags: tuple[str, ...] = ()
    ) -> None:
        self._name = kernel
        self._dims = dims
        self._flags = flags
        self._arguments = arguments
        self._variants: dict[Key, tuple[_Loaded, ...]] = {}
        self._calls: dict[tuple[int, ...], list[Call]] = {}  # by the values of the flags
        self._failed: set[Key] = set()  # since the last step()
        self._lock = threading.Lock()
        _operators.add(self)
        _fork.watch(self)

    def call(
        self,
        inputs: tuple[str, ...],
        outputs: tuple[str, ...],
        known: tuple[str, ...],
        numbers: int = 0,
        flags: tuple[int, ...] = (),
        constants: tuple[Any, ...] = (),
        without: tuple[str, ...] = (),
    ) -> Call:
        """A call of its variants with these flags, for the operator's arguments but those that it does
        without. inputs, outputs: the tensors' shapes in the kernel's dims. known: the dims in its keys.
        numbers: how many arguments follow the tensors.
        constants: what the backward pass has to know besides."""
        arguments = tuple(name for name in self._arguments if name not in without)
        native = _core.OperatorCall(access, self._dims, inputs, outputs, known, numbers, constants)
        call = Call(native, len(inputs), numbers, arguments)
        self._calls.setdefault(flags, []).append(call)
        return call

    def after_fork(self) -> None:
        """In the child, which has no CUDA context."""
        self._lock = threading.Lock()
        self._forget_variants()

    def forget(self) -> None:
        """What was found and what was missed."""
        with self._lock:
            self._forget_variants()
            self._failed = set()

    def _forget_variants(self) -> None:
        self._variants = {}
        for calls in self._calls.values():
            for call in calls:
                call.native.clear()

    def launch(self, key: Key, dims: tuple[int, ...], stream: int, arguments: tuple[Any, ...]) -> bool:
        """Launches on the stream. False where there is no kernel for it, for a reason that was warned of
        once; raises it with settings.strict."""
        try:
            return self._launch(key, dims, stream, arguments)
        except InvalidArgumentError:
            # A view may begin at an address that vectors cannot be read from; a copy of it does not.
            aligned = tuple(map(_aligned, arguments))
            if all(a is b for a, b in zip(aligned, arguments)):
                raise
            return self._launch(key, dims, stream, aligned)

    def knows(self, key: Key) -> bool:
        """Whether a variant of the key is loaded."""
        return key in self._variants

    def available(self, key: Key, dims: tuple[int, ...]) -> bool:
        """Whether there is a kernel for it; False, warned of and raised as launch() says."""
        known = self._variants.get(key, ())
        return any(loaded.extents(dims) is not None for loaded in known) or self._ask(key, dims) is not None

    def _launch(self, key: Key, dims: tuple[int, ...], stream: int, arguments: tuple[Any, ...]) -> bool:
        for loaded in self._variants.get(key, ()):
            ordered = loaded.arguments_for(dims, arguments)
            if ordered is not None and loaded.launch(dims, stream, *ordered):
                return True
        found = self._ask(key, dims)
        if found is None:
            return False
        ordered = found.arguments_for(dims, arguments)
        return ordered is not None and found.launch(dims, stream, *ordered)

    def _ask(self, key: Key, dims: tuple[int, ...]) -> _Loaded | None:
        if not settings.strict and key in self._failed:
            return None
        try:
            loaded = self._load(key, dims)
        except CubindError as error:
            if settings.strict:
                raise
            self._failed.add(key)
            warn_once(f"{self._name}: torch's own formula is used: {error}")
            return None
        with self._lock:
            known = (loaded, *self._variants.get(key, ()))[:_MAX_VARIANTS]
            self._variants[key] = known
            for call in self._calls.get(key[2], ()):
                call.know(key, known)
        return loaded

    def _load(self, key: Key, dims: tuple[int, ...]) -> _Loaded:
        dtype, device, flags, _ = key
        with _lock:
            if settings.client is None:
                settings.client = connect()
        problem = {**dict(zip(self._dims, dims)), "T": TYPES[dtype], **dict(zip(self._flags, flags))}
        with torch.cuda.device(device) if torch.cuda.is_available() else contextlib.nullcontext():
            answer = settings.client.ask(self._name, problem, Question(), gpu=device).answer
            return _Loaded(load(answer, device), self._arguments)


def _aligned(argument: Any) -> Any:
    is_misaligned = isinstance(argument, torch.Tensor) and argument.data_ptr() % _ALIGNED
    return argument.clone() if is_misaligned else argument


_operators: weakref.WeakSet[Operator] = weakref.WeakSet()
_lock = threading.Lock()
_warned: set[str] = set()


def step() -> None:
    """Between two training steps: takes over what has been tuned since, and asks again for kernels that were
    not there. The operators' variants change nowhere else."""
    for operator in _operators:
        operator.forget()


def warn_once(message: str) -> None:
    """A warning, the first time that it is given."""
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, RuntimeWarning, stacklevel=5)
