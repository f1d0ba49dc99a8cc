"""The variants behind the operators: found once, launched without a look at the daemon, replaced only by step()."""

from __future__ import annotations

import os
import threading
import warnings
from typing import Any

from .. import _core, _fork, connect
from .._loading import load
from ..client import Client, Question
from ..errors import CubindError

_MAX_VARIANTS = 64  # of one kernel, device and set of types and fixed dims


class Settings:
    """strict: a kernel that is not there raises, where otherwise torch's formula takes its place with one warning; by default
    only in a job of several ranks, which must not diverge in silence. client: None connects when the first kernel is needed.
    generation: what was found out before the last step() does not count."""

    def __init__(self) -> None:
        self.strict = int(os.environ.get("WORLD_SIZE", "1")) > 1
        self.client: Client | None = None
        self.generation = 0


settings = Settings()


class _Loaded:
    def __init__(self, kernel: _core.Kernel, arguments: tuple[str, ...]) -> None:
        names = tuple(parameter[0] for parameter in kernel.parameters())
        self.kernel = kernel
        self.launch = kernel.launch
        self.extents = kernel.extents
        self.order = None if names == arguments else tuple(arguments.index(name) for name in names)
        self.generation = settings.generation


class Operator:
    """Launches one kernel. arguments: the spec's names in the order in which launch() is given them. Safe on many threads."""

    def __init__(self, kernel: str, dims: tuple[str, ...], fixed: int, arguments: tuple[str, ...]) -> None:
        """fixed: how many of the last dims tell variants apart by their place in the key (those compiled in)."""
        self._name = kernel
        self._dims = dims
        self._fixed = fixed
        self._arguments = arguments
        self._variants: dict[Any, tuple[_Loaded, ...]] = {}
        self._failed: dict[Any, int] = {}  # the generation in which the kernel was not there
        self._lock = threading.Lock()
        _fork.watch(self)

    def after_fork(self) -> None:
        """In the child, which has no CUDA context."""
        self._lock = threading.Lock()
        self._variants = {}

    def launch(
        self, dtype: str, device: int, dims: tuple[int, ...], stream: int, arguments: tuple[Any, ...]
    ) -> bool:
        """Launches on the stream. False where there is no kernel for it, for a reason that was warned of once; raises it with
        settings.strict."""
        loaded = self.find(dtype, device, dims)
        if loaded is None:
            return False
        given = arguments if loaded.order is None else tuple(arguments[i] for i in loaded.order)
        return loaded.launch(dims, stream, *given)

    def find(self, dtype: str, device: int, dims: tuple[int, ...]) -> _Loaded | None:
        """The variant for these dims, asked for where none is known."""
        key = (dtype, device, dims[-self._fixed :])
        for loaded in self._variants.get(key, ()):
            if loaded.generation == settings.generation and loaded.extents(dims) is not None:
                return loaded
        return self._ask(key, dtype, device, dims)

    def _ask(self, key: Any, dtype: str, device: int, dims: tuple[int, ...]) -> _Loaded | None:
        if not settings.strict and self._failed.get(key) == settings.generation:
            return None
        try:
            loaded = self._load(dtype, device, dims)
        except CubindError as error:
            if settings.strict:
                raise
            self._failed[key] = settings.generation
            warn_once(f"{self._name}: torch's own formula is used: {error}")
            return None
        with self._lock:
            others = tuple(v for v in self._variants.get(key, ()) if v.generation == settings.generation)
            self._variants[key] = (loaded, *others)[:_MAX_VARIANTS]
        return loaded

    def _load(self, dtype: str, device: int, dims: tuple[int, ...]) -> _Loaded:
        with _lock:
            if settings.client is None:
                settings.client = connect()
        problem = {**dict(zip(self._dims, dims)), "T": dtype}
        answer = settings.client.ask(self._name, problem, Question(), gpu=device).answer
        return _Loaded(load(answer, device), self._arguments)


_lock = threading.Lock()
_warned: set[str] = set()


def step() -> None:
    """Between two training steps: takes over what has been tuned since, and asks again for kernels that were not there. The
    operators' variants change nowhere else."""
    settings.generation += 1


def warn_once(message: str) -> None:
    """A warning, the first time that it is given."""
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, RuntimeWarning, stacklevel=4)
