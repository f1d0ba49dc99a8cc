"""The patch of Triton's autotuner: where it looks for its choice, the daemon is asked first.

Autotuner.run is replaced on the class by a descriptor, which makes the dictionary of an autotuner's choices a
Choices, and gives Triton's own run(): a call pays for no function more than before. Triton's run() looks
whether the key of a call is in the dictionary. If it is missing there, Choices asks, with the arguments of
that run(). Without an answer Triton goes on as ever. Classes that override run() are left alone.
"""

from __future__ import annotations

import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from .. import _fork
from .._asking import warn
from . import _triton_private as private
from ._own import StaysOwnError
from ._question import Question
from .definition import Definition

_bound = types.MethodType


class Daemon(Protocol):
    """What answers for the autotuner. Both calls may raise whatever they want: Triton goes on without it."""

    def ask(self, hint: str, definition: Callable[[], Definition]) -> int | None:
        """The configuration to launch, by its position in the definition. None: Triton chooses.

        hint: a digest of what the definition is made from. definition: makes it; a daemon that knows the
            hint need not call it.
        """
        ...

    def offer(self, hint: str, times_ms: list[float | None]) -> None:
        """What Triton has measured here after ask() gave None: a time per configuration, None where there is
        none."""
        ...


class Counts:
    """What became of one function's calls that Triton had no choice for."""

    def __init__(self) -> None:
        self.asked = 0
        self.answered = 0
        self.own: dict[str, int] = {}  # how often it stayed Triton's own, by the reason


class Choices(dict[Any, Any]):
    """An autotuner's choices by key."""

    def __init__(self, tuner: Any, patch: Patch, known: dict[Any, Any]) -> None:
        super().__init__(known)
        self._tuner = weakref.ref(tuner)
        self._patch = patch
        self.answered: set[Any] = set()
        self.unanswered: dict[Any, tuple[str, list[Any]]] = {}  # hints and configurations by key

    def __contains__(self, key: Any) -> bool:
        if dict.__contains__(self, key):
            return True
        call = private.call_of(sys._getframe(1))
        return call is not None and self._patch.choose(self._tuner(), self, key, *call)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)  # a copy of the autotuner is Triton's own

    def __setitem__(self, key: Any, choice: Any) -> None:
        dict.__setitem__(self, key, choice)
        if (question := self.unanswered.pop(key, None)) is not None:
            self._patch.offer(*question, private.times_of(sys._getframe(1)))


class _Run:
    """Autotuner.run while the patch is installed."""

    def __init__(self, original: Callable[..., Any], adopt: Callable[[Any], None]) -> None:
        self._original = original
        self._adopt = adopt

        def run(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            if tuner.cache.__class__ is not Choices:
                adopt(tuner)
            return original(tuner, *args, **kwargs)

        run.__name__, run.__qualname__, run.__doc__ = "run", "Autotuner.run", original.__doc__
        self._function = run  # of the class, for others that patch it

    def __get__(self, tuner: Any, owner: Any = None) -> Callable[..., Any]:
        if tuner is None:
            return self._function
        if tuner.cache.__class__ is not Choices:
            self._adopt(tuner)
        return _bound(self._original, tuner)


class Patch:
    """Safe on many threads as far as Triton is."""

    def __init__(self, daemon: Daemon | None) -> None:
        self._daemon = daemon
        self.after_fork()
        _fork.watch(self)
        self._tuners: weakref.WeakSet[Any] = weakref.WeakSet()  # guarded by _lock
        self._counts: dict[str, Counts] = {}  # guarded by _lock
        self._original: Any = None
        self._run: Any = None

    def after_fork(self) -> None:
        """In the child, whose other threads are gone with the locks that they held."""
        self._lock = threading.Lock()
        self._capturing = threading.RLock()  # held while a kernel's run() is replaced

    # ---- In and out ----

    def install(self) -> None:
        """Replace Autotuner.run, if there is a daemon."""
        if self._daemon is None:
            return
        self._original = vars(private.Autotuner)["run"]
        self._run = _Run(self._original, self._adopt)
        private.Autotuner.run = self._run

    def uninstall(self) -> None:
        """Put it back, with the choices that are Triton's. Where another patch lies over this one, both stay,
        and this one asks nothing more."""
        if self._run is not None and vars(private.Autotuner)["run"] is self._run:
            private.Autotuner.run = self._original
        self._daemon = None
        with self._lock:
            for tuner in self._tuners:
                choices = tuner.cache
                if isinstance(choices, Choices):
                    tuner.cache = {key: choices[key] for key in choices if key not in choices.answered}
            self._tuners.clear()

    def _adopt(self, tuner: Any) -> None:
        """Have the autotuner ask from now on, if it has something to choose, in a way that is known."""
        if self._daemon is None or len(tuner.configs) < 2 or type(tuner.cache) is not dict:
            return
        with self._lock:
            if type(tuner.cache) is dict:
                tuner.cache = Choices(tuner, self, tuner.cache)
                self._tuners.add(tuner)

    # ---- Where Triton has no choice ----

    def choose(
        self, tuner: Any, choices: Choices, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> bool:
        """Ask for a choice; whether there is one now."""
        daemon = self._daemon
        if daemon is None or tuner is None or kwargs.get("warmup"):
            return False
        name = _name_of(tuner)
        try:
            with self._capturing:
                question = Question(tuner, key, args, kwargs)
            self._count(name).asked += 1
            index = daemon.ask(question.hint, lambda: question.definition)
            if index is None:
                choices.unanswered[key] = question.hint, question.configurations
                return False
            choice = question.configurations[_checked(index, len(question.configurations))]
        except StaysOwnError as error:
            self._stays_own(name, str(error))
            return False
        except Exception as error:
            warn(f"{name} is tuned by Triton: {type(error).__name__}: {error}", f"triton {name}")
            return False
        choices.answered.add(key)
        dict.__setitem__(choices, key, choice)
        self._count(name).answered += 1
        return True

    def offer(self, hint: str, configurations: list[Any], times: dict[Any, Any]) -> None:
        """What Triton has measured. It goes on with it whatever becomes of the offer."""
        daemon = self._daemon
        if daemon is None or not times:
            return
        try:
            daemon.offer(hint, [_median(times.get(configuration)) for configuration in configurations])
        except Exception as error:
            warn(f"what Triton measured is not kept: {type(error).__name__}: {error}")

    # ---- Counts ----

    def _count(self, name: str) -> Counts:
        with self._lock:
            return self._counts.setdefault(name, Counts())

    def _stays_own(self, name: str, reason: str) -> None:
        own = self._count(name).own
        own[reason] = own.get(reason, 0) + 1
        warn(f"{name} stays Triton's own: it {reason}", f"triton {name} {reason}")

    def counts(self) -> dict[str, Counts]:
        """By the name of the function."""
        with self._lock:
            return dict(self._counts)


def _name_of(tuner: Any) -> str:
    function = tuner.base_fn
    return f"{function.__module__}.{function.__qualname__}"


def _checked(index: Any, count: int) -> int:
    if type(index) is not int or not 0 <= index < count:
        raise ValueError(f"the daemon chose configuration {index!r} of {count}")
    return index


def _median(times: Any) -> float | None:
    """Triton keeps the median first; a configuration that did not run has an infinite one."""
    median = times[0] if isinstance(times, (list, tuple)) and times else times
    return float(median) if isinstance(median, (int, float)) and median != float("inf") else None
