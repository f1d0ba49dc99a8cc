"""A kernel that is launched on arrays, and prepared launches."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from . import _core, _fork, _wire, arrays
from ._interface import Interface, complete_problem, output_shape
from ._loading import load
from .errors import InvalidArgumentError

if TYPE_CHECKING:
    from ._repeats import Repeated
    from ._wire import Problem
    from .answer import Answer
    from .client import Client
    from .question import Question

_OUTPUTS = ("out", "inout", "zero")
_MAY_BE_NULL = ("in", "inout", "scratch")  # without elements
_MAX_VARIANTS = 64  # of one set of types, flags and device
_MAX_REPEATED = 64  # calls of different names or parts of the problem


@dataclasses.dataclass(frozen=True)
class _Variant:
    """An answer whose cubin is loaded. until: the time.monotonic() seconds at which the client asks again."""

    answer: Answer
    until: float
    loaded: _core.Kernel
    parameters: tuple[_core.Parameter, ...]


@dataclasses.dataclass(frozen=True)
class _Call:
    """One call, ready to launch."""

    known: tuple[_Variant, ...]  # the variants of its key; the first one is launched
    dims: tuple[int, ...]
    values: list[Any]
    made: dict[str, Any]  # the outputs that were allocated

    @property
    def variant(self) -> _Variant:
        return self.known[0]


class BoundKernel:
    """A prepared launch with fixed kernel, problem, arrays and scalars. It looks up and allocates nothing.

    bound() launches on the current stream of the arrays' library. bound(x2, w2), or bound(x=x2), launches
    with other arrays instead of those bound; they must have the same shapes, types and device, of which
    only the pointers' alignment is checked. `bound.launch` is the same callable, a little faster. If the
    kernel has tensor maps and a CUDA graph captured the launch, other buffers under them are refused with
    FailedPreconditionError: the graph holds those that `captured` names.

    arguments: the names of the arguments, in order. answer: the variant. values: the bound values, in that
    order.
    """

    __slots__ = ("__weakref__", "answer", "arguments", "launch", "values")

    def __init__(
        self, answer: Answer, arguments: tuple[str, ...], values: list[Any], launch: Callable[..., None]
    ) -> None:
        self.answer = answer
        self.arguments = arguments
        self.values = values
        self.launch = launch

    def __call__(self, *arguments: Any, **named: Any) -> None:
        self.launch(*arguments, **named)

    @property
    def captured(self) -> dict[str, int]:
        """The addresses of the buffers whose tensor maps the last capture of this launch into a CUDA graph
        holds, by argument. Empty for a kernel without tensor maps, whose graphs hold plain addresses."""
        return self.launch.__self__.captured()  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"cubind.BoundKernel({self.answer.kernel}, {self.answer.problem})"


class Kernel:
    """Launches the best variant of a kernel on arrays. Client.kernel() makes one. Safe on many threads.

    kernel(x=x, w=w, y=y, eps=1e-6, N=4096, D=4096, T="bf16") asks the daemon once for each bucket of
    problems, and launches on the current stream of the arrays' library (torch, CuPy), also while a CUDA
    graph is captured.

    If a call on torch tensors has the names of an earlier one and a variant is loaded for it, the call skips
    the checks in Python; it takes a few microseconds more than a bound launch.

    name: the kernel. dims, types: the names of its problem.
    """

    def __init__(
        self,
        client: Client,
        name: str,
        interface: Interface,
        fixed: Problem,
        question: Question,
    ) -> None:
        self.name = name
        self.dims = interface.dims
        self.types = interface.types
        self._interface = interface
        self._names = interface.names
        self._client = client
        self._fixed = fixed
        self._question = question
        self._variants: dict[Any, tuple[_Variant, ...]] = {}
        self._repeated: dict[tuple[Any, ...], Repeated] = {}  # from the first call on tensors of torch
        self._lock = threading.Lock()
        _fork.watch(self)

    def after_fork(self) -> None:
        """Called in the child, which has no CUDA context: drops the loaded variants."""
        self._lock = threading.Lock()
        self._variants = {}
        self._repeated = {}

    def __repr__(self) -> str:
        return f"cubind.Kernel({self.name!r}, {self._fixed})"

    def __call__(self, *, stream: int | None = None, **named: Any) -> Any:
        """Launches the kernel. named: arrays and scalars by the spec's argument names, and the parts of the
        problem that are not fixed.

        If the spec gives the buffers' shapes, missing dims and types are read from the arrays. Arrays must be
        C-contiguous, in GPU memory, of the variant's types and at least as large as the plan's extents.
        Missing outputs are allocated and returned, one by itself or several as a tuple in the order of
        `arguments()`; they are flat if the spec gives no shape. Missing scratch buffers are allocated.
        stream: a CUstream; None: the current one of the arrays' library.

        Raises InvalidArgumentError at `argument NAME` before anything is launched, and the errors of
        Client.get().
        """
        if self._repeated:
            try:
                repeated = self._repeated.get(self._key(named))
            except TypeError:  # a part of the problem that is no value: it is refused below
                repeated = None
            result = repeated(stream, named) if repeated is not None else NotImplemented
            if result is not NotImplemented:
                return result
        call = self._prepare(named)
        if stream is None:
            source, device = arrays.stream_source(call.values)
            stream = source if isinstance(source, int) else source(device)
        if not call.variant.loaded.launch(call.dims, stream, *call.values):
            raise InvalidArgumentError("the rule does not cover it", "problem")  # it did a moment ago
        self._remember(named, call)
        return _returned(list(call.made.values()))

    def bind(self, *, stream: int | None = None, **named: Any) -> BoundKernel:
        """Prepares the call with these `named` arguments: checks and computes everything now, but launches
        nothing. stream: as in a call; None: the stream that is current at each launch."""
        call = self._prepare(named)
        source, device = arrays.stream_source(call.values) if stream is None else (stream, None)
        launch = call.variant.loaded.prepare(call.dims, call.values, source, device)
        if launch is None:
            raise InvalidArgumentError("the rule does not cover it", "problem")
        answer = call.variant.answer.for_dims(**dict(zip(call.variant.answer.dim_names, call.dims)))
        return BoundKernel(answer or call.variant.answer, _names(call.variant), call.values, launch)

    def arguments(self, **named: Any) -> tuple[str, ...]:
        """The names of the arguments that the caller passes to the variant for a problem, in the order of its
        launches. named: the parts of the problem that are not fixed."""
        problem, _ = self._split(named)
        return _names(self._variant(problem, None)[0][0])

    def loaded(self, **named: Any) -> _core.Kernel:
        """The loaded variant for a problem without arrays, for launches that check nothing:
        `loaded.launch((N, D), stream, *arguments)` returns False if the variant does not cover these dims.
        named: the parts of the problem that are not fixed."""
        problem, _ = self._split(named)
        return self._variant(problem, None)[0][0].loaded

    # ---- One call ----

    # Of the calls that can be repeated by the same names, and the same parts of the problem.
    def _key(self, named: dict[str, Any]) -> tuple[Any, ...]:
        names = tuple(named)
        if self._names.isdisjoint(names):
            return names
        return (*names, *[named[name] for name in names if name in self._names])

    def _remember(self, named: dict[str, Any], call: _Call) -> None:
        if not any(map(arrays.is_torch, call.values)):
            return
        from ._torch_access import access  # torch has been imported

        if access() is None:
            return
        from ._repeats import layout_of, repeated

        variants = [(variant.loaded, variant.parameters) for variant in call.known]
        until = min(variant.until for variant in call.known)
        key = self._key(named)
        layout = layout_of(self._interface, self._fixed, named, call.made, call.dims, variants[0][1])
        if layout is None:
            return
        if len(self._repeated) >= _MAX_REPEATED:
            self._repeated = {}
        found = repeated(layout, variants, until, self._repeated.get(key))
        if found is not None:
            self._repeated[key] = found

    def _prepare(self, named: Mapping[str, Any]) -> _Call:
        problem, given = self._split(named)
        like = next((value for value in given.values() if arrays.is_array(value)), None)
        device = None if like is None else arrays.facts_of("", like).device
        with _on_device(like, device):
            known, dims, extents = self._variant(problem, device)
        names = _names(known[0])
        unknown = set(given).difference(names)
        if unknown:
            raise InvalidArgumentError(
                f"{self.name} takes no such argument (it takes {', '.join(names)}; "
                f"the problem has {', '.join((*self.dims, *self.types))})",
                f"argument {min(unknown)}",
            )
        values, made = self._complete(known[0], extents, problem, given, like, device)
        return _Call(known, dims, values, made)

    def _split(self, named: Mapping[str, Any]) -> tuple[Problem, dict[str, Any]]:
        of_problem = {name: value for name, value in named.items() if name in self._names}
        given = {name: arrays.readable(value) for name, value in named.items() if name not in of_problem}
        problem = {**self._fixed, **_wire.parse_problem(None, of_problem)}
        return complete_problem(self._interface, problem, given), given

    # The arguments in the variant's order: arrays checked, scratch and outputs that were left out allocated.
    def _complete(
        self,
        variant: _Variant,
        extents: tuple[int, ...],
        problem: Problem,
        given: Mapping[str, Any],
        like: Any,
        device: int | None,
    ) -> tuple[list[Any], dict[str, Any]]:
        values: list[Any] = []
        made: dict[str, Any] = {}
        for (name, source, dtype, role), extent in zip(variant.parameters, extents):
            value = given.get(name)
            if source == "buffer" and value is None and extent == 0 and role in _MAY_BE_NULL:
                value = 0
            elif source == "buffer" and value is None:
                elements = extent // arrays.ITEM_BYTES[dtype]
                _check_allocatable(name, role, extent)
                shape = output_shape(self._interface, name, elements, problem, given)
                value = arrays.empty(like, shape, dtype, role == "zero")
                if role in _OUTPUTS:
                    made[name] = value
            elif source == "buffer" and not isinstance(value, int):
                arrays.check(name, value, dtype, extent, device)
            values.append(value)
        return values, made

    # The variants of the problem's key, that for its dims first, its dims and its arguments' extents. A known
    # one costs no call and no look at the client.
    def _variant(
        self, problem: Problem, device: int | None
    ) -> tuple[tuple[_Variant, ...], tuple[int, ...], tuple[int, ...]]:
        dims = tuple(int(problem[name]) for name in self.dims)
        key = (device, *(value for name, value in problem.items() if name not in self.dims))
        known = self._variants.get(key, ())
        for variant in known:
            extents = variant.loaded.extents(dims)
            if extents is not None and variant.until > time.monotonic():
                others = (v for v in known if v is not variant and v.until > time.monotonic())
                return (variant, *others), dims, extents
        variant = self._load(problem, device)
        with self._lock:
            others = (v for v in self._variants.get(key, ()) if v.until > time.monotonic())
            self._variants[key] = known = (variant, *others)[:_MAX_VARIANTS]
            self._repeated = {}  # the new one may answer for what others answered for
        extents = variant.loaded.extents(dims)
        if extents is None:
            raise InvalidArgumentError("the answer does not hold for its own question", "problem")
        return known, dims, extents

    def _load(self, problem: Problem, device: int | None) -> _Variant:
        held = self._client.ask(self.name, problem, self._question, gpu=device)
        loaded = load(held.answer, device)
        return _Variant(held.answer, held.until, loaded, loaded.parameters())


def _names(variant: _Variant) -> tuple[str, ...]:
    return tuple(parameter[0] for parameter in variant.parameters)


def _check_allocatable(name: str, role: str, extent: int) -> None:
    if role not in ("out", "zero", "scratch"):
        raise InvalidArgumentError(
            f"is missing: the kernel takes a buffer of that name, {extent} bytes of GPU memory",
            f"argument {name}",
        )


def _returned(made: list[Any]) -> Any:
    if not made:
        return None
    return made[0] if len(made) == 1 else tuple(made)


# The device of the arrays as the current one of their library, for loading on a machine with several.
def _on_device(like: Any, device: int | None) -> contextlib.AbstractContextManager[Any]:
    if device is None:
        return contextlib.nullcontext()
    if arrays.is_torch(like):
        return sys.modules["torch"].cuda.device(device)
    cupy = sys.modules.get("cupy")
    return cupy.cuda.Device(device) if cupy is not None else contextlib.nullcontext()
