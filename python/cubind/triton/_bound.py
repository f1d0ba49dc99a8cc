"""Launches of one kernel on one grid, with little Python between two of them.

Triton's kernel[grid](...) binds, specializes and looks up at every call. A Bound does so once for each kind
of call. The key of a kind is finer than Triton's specialization and its autotuner's key: calls with the same
key launch the same binary.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any, NoReturn

import triton.language as tl
from triton import knobs
from triton.runtime.autotuner import Autotuner
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from ..errors import InvalidArgumentError

_MOST_EXACT = 1024  # keys with all numbers, of which a program may have any number
# What a key has of an argument.
_TENSOR = "{0}.dtype, {0}.data_ptr() & 15"
_EXACT = "{0}.__class__, {0}"
_FLOAT = "{0}.__class__, repr({0})"  # 0.0 and -0.0 are equal, and a NaN is not
_CLASS = "{0}.__class__"
# Triton compiles for 1, multiples of 16, and the sizes of 32, 64 and unsigned 64 bits.
_INTEGER = "{0}.__class__, {0} == 1, not {0} & 15, -0x80000000 <= {0} < 0x80000000, {0} < 0x8000000000000000"

_SOURCE = """
def exact_key(device, {names}):
    return (device, {exact})

def alike_key(device, {names}):
    return (device, {alike})

def launch({parameters}):
    device = current_device()
    try:
        run, function, packed, constants, _ = known[device, {exact}]
    except (AttributeError, KeyError, TypeError):
        return other(device, {names})
    if before or entered or left or hooks.launch_enter_hook is not enter or hooks.launch_exit_hook is not leave:
        return ordinary({names})
    {grid}
    run({sizes}, current_stream(device), function, packed, None, None, None, {passed})
"""


class Bound:
    """The kernel on the grid. It is called with the kernel's arguments but for those in `fixed` and those
    that the kernel's configurations set. Safe on many threads as far as Triton is."""

    def __init__(self, kernel: Any, grid: Any, fixed: dict[str, Any]) -> None:
        """Raises InvalidArgumentError for a kernel that only Triton can launch."""
        self._jit = _checked(kernel)
        self._kernel = kernel
        self._configurations = kernel.configs if isinstance(kernel, Autotuner) else []
        self._key_names = set(kernel.keys) if isinstance(kernel, Autotuner) else set()
        self._grid = grid
        self._fixed = fixed
        set_ones = fixed.keys() | {name for each in self._configurations for name in each.all_kwargs()}
        parameters = list(self._jit.signature.parameters.values())
        self._open = [each for each in parameters if each.name not in set_ones]
        self._closed = [each for each in parameters if each.name in set_ones]
        self._constants = {each.name for each in self._jit.params if each.is_constexpr}
        self._kinds: list[str] = []
        self._known: dict[Any, Any] = {}  # by the exact key
        self._alike: dict[Any, Any] = {}
        self._exact_key: Callable[..., Any] = _unknown
        self._alike_key: Callable[..., Any] = _unknown
        self._launch: Callable[..., None] = self._first
        self.__signature__ = inspect.Signature(self._open)

    # The compiled function itself: a method that passes the arguments on would take a quarter of the time.
    __call__ = property(operator.attrgetter("_launch"))

    # ---- The first call of a kind: Triton's own launch ----

    def _first(self, *args: Any, **kwargs: Any) -> None:
        bound = self.__signature__.bind(*args, **kwargs)
        bound.apply_defaults()
        values = tuple(bound.arguments.values())
        kinds = self._kinds_of(values)
        if "" in kinds:
            self._ordinary(*values)
            return
        self._kinds = kinds
        self._compile()
        self._other(driver.active.get_current_device(), *values)

    def _other(self, device: int, *values: Any) -> None:
        """A call whose exact key is not known."""
        if self._kinds_of(values) != self._kinds:
            self._ordinary(*values)
            return
        alike = self._alike_key(device, *values)
        found = self._alike.get(alike)
        if found is not None:
            self._keep(self._exact_key(device, *values), found)
            self._launch(*values)
            return
        kernel = self._ordinary(*values)
        winner = self._winner(values)
        if kernel is not None and winner is not None:
            # The kernel itself, too: its module may be unloaded with it.
            found = kernel.run, kernel.function, kernel.packed_metadata, winner, kernel
            self._alike[alike] = found
            self._keep(self._exact_key(device, *values), found)

    def _keep(self, key: Any, found: Any) -> None:
        if len(self._known) >= _MOST_EXACT:
            self._known.clear()
        self._known[key] = found

    def _ordinary(self, *values: Any) -> Any:
        """The kernel that was launched."""
        args, kwargs = self._passed(values)
        found = self._kernel[self._grid](*args, **kwargs)
        return found.result() if hasattr(found, "result") else found

    def _passed(self, values: tuple[Any, ...]) -> tuple[list[Any], dict[str, Any]]:
        """By position up to the first parameter that is set: functions that prune configurations get those
        apart from the others."""
        names = [each.name for each in self._open]
        leading = 0
        while leading < len(names) and names[leading] == self._jit.arg_names[leading]:
            leading += 1
        return list(values[:leading]), {**dict(zip(names[leading:], values[leading:])), **self._fixed}

    def _winner(self, values: tuple[Any, ...]) -> list[Any] | None:
        """The values of the closed parameters; None: the autotuner has not chosen for good."""
        chosen: dict[str, Any] = {}
        if len(self._configurations) > 1:
            args, kwargs = self._passed(values)
            given = {**dict(zip(self._jit.arg_names, args)), **kwargs}
            given = {name: value for name, value in given.items() if name in self._jit.arg_names}
            key = [given[name] for name in self._kernel.keys if name in given]
            key += [str(value.dtype) for value in given.values() if hasattr(value, "dtype")]
            if not dict.__contains__(self._kernel.cache, tuple(key)):
                return None
            chosen = self._kernel.cache[tuple(key)].all_kwargs()
        elif self._configurations:
            chosen = self._configurations[0].all_kwargs()
        chosen = {**self._fixed, **chosen}
        return [chosen.get(each.name, each.default) for each in self._closed]

    # ---- The next ones ----

    def _kinds_of(self, values: tuple[Any, ...]) -> list[str]:
        return [self._kind(each.name, value) for each, value in zip(self._open, values)]

    def _kind(self, name: str, value: Any) -> str:
        """What a key has of the argument; "": no key can have it."""
        if isinstance(value, float) and name in self._constants | self._key_names:
            return _FLOAT
        if name in self._constants:
            return _EXACT if value is None or isinstance(value, (bool, int, str, tl.dtype)) else ""
        if value is None or type(value) is bool:
            return _EXACT
        if type(value) in (int, float):
            is_key = name in self._key_names
            return _EXACT if is_key else _INTEGER if type(value) is int else _CLASS
        return _TENSOR if hasattr(value, "data_ptr") else ""

    def _compile(self) -> None:
        """The functions for these kinds. They spell out the arguments: a launch has no loop over them."""
        names = [each.name for each in self._open]
        closed = {each.name: f"constants[{index}]" for index, each in enumerate(self._closed)}
        passed = {name: closed.get(name, name) for name in self._jit.arg_names}
        exact = [_EXACT if kind == _INTEGER else kind for kind in self._kinds]
        text = _SOURCE.format(
            names=", ".join(names),
            parameters=", ".join(map(_parameter, self._open)),
            exact=_parts(exact, names),
            alike=_parts(self._kinds, names),
            passed=", ".join(passed.values()),
            **_grid_text(self._grid, passed),
        )
        found = self._environment()
        exec(text, found)
        self._exact_key, self._alike_key = found["exact_key"], found["alike_key"]
        self._launch = found["launch"]

    def _environment(self) -> dict[str, Any]:
        hooks = knobs.runtime
        enter, leave = hooks.launch_enter_hook, hooks.launch_exit_hook
        return {
            **{f"default_{each.name}": each.default for each in self._open},
            "current_device": driver.active.get_current_device,
            "current_stream": driver.active.get_current_stream,
            "known": self._known,
            "other": self._other,
            "ordinary": self._ordinary,
            "grid": self._grid,
            "before": self._jit.pre_run_hooks,
            "hooks": hooks,
            # Chains of hooks are part of Triton from 3.5 on; until then a hook is a function or None.
            "enter": enter if hasattr(enter, "calls") else None,
            "leave": leave if hasattr(leave, "calls") else None,
            "entered": getattr(enter, "calls", ()),
            "left": getattr(leave, "calls", ()),
        }


def _unknown(*_: Any) -> Any:
    raise AssertionError("before the first call")


def _parts(kinds: list[str], names: list[str]) -> str:
    return ", ".join(kind.format(name) for kind, name in zip(kinds, names))


def _parameter(parameter: inspect.Parameter) -> str:
    name = parameter.name
    return name if parameter.default is inspect.Parameter.empty else f"{name}=default_{name}"


def _grid_text(grid: Any, passed: dict[str, str]) -> dict[str, str]:
    if not callable(grid):
        return {"grid": "", "sizes": ", ".join(str(int(size)) for size in (*grid, 1, 1)[:3])}
    named = ", ".join(f"{name!r}: {value}" for name, value in passed.items())
    return {"grid": f"sizes = (*grid({{{named}}}), 1, 1)", "sizes": "sizes[0], sizes[1], sizes[2]"}


def _checked(kernel: Any) -> JITFunction[Any]:
    function = kernel.fn if isinstance(kernel, Autotuner) else kernel
    if not isinstance(function, JITFunction):
        _refuse(f"is around {type(function).__name__}, not around a function of @triton.jit")
    if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in function.signature.parameters.values()):
        _refuse("takes any number of arguments")
    if isinstance(kernel, Autotuner) and any(each.pre_hook for each in kernel.configs):
        _refuse("has configurations with a pre_hook, which runs before each launch")
    return function


def _refuse(cause: str) -> NoReturn:
    raise InvalidArgumentError(f"{cause}: launch it as kernel[grid](...)", "kernel")
