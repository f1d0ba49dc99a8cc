"""Cubins in CUDA contexts. They stay loaded as long as the process lives: launches may be under way, and a
CUDA graph that was captured holds its kernels forever."""

from __future__ import annotations

import threading
from typing import Any

from . import _core, _fork
from .answer import Answer


class _LoadedCubins:
    """The first kernel of each cubin, by device: it keeps the cubin loaded, and further rules share it."""

    def __init__(self) -> None:
        self._kernels: dict[Any, _core.Kernel] = {}
        self._lock = threading.Lock()
        self._parents: list[Any] = []
        _fork.watch(self)

    def after_fork(self) -> None:
        """In the child, which has no CUDA context and must not unload what its parent loaded."""
        self._lock = threading.Lock()
        self._parents.append(self._kernels)
        self._kernels = {}

    def load(self, answer: Answer, device: Any) -> _core.Kernel:
        """The answer's cubin in the current context, which is the one of `device`; loaded once."""
        with self._lock:
            first = self._kernels.get((device, answer.digest))
            kernel = _core.Kernel(answer.rule(), answer.cubin, first)
            if first is None:
                self._kernels[device, answer.digest] = kernel
            return kernel


load = _LoadedCubins().load
