"""Locks in forked children, and objects with them: a lock that another thread of the parent held would stay
locked forever."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Forkable(Protocol):
    """after_fork() is called in the child, before anything else of the object is."""

    def after_fork(self) -> None: ...


_all: weakref.WeakSet[Forkable] = weakref.WeakSet()


def watch(forkable: Forkable) -> None:
    """Has after_fork() called as long as the object lives."""
    _all.add(forkable)


class Lock:
    """One that is free in a child. No thread forks with it held."""

    def __init__(self) -> None:
        self.after_fork()
        watch(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _after_fork() -> None:
    for forkable in list(_all):
        forkable.after_fork()


os.register_at_fork(after_in_child=_after_fork)
