"""The patch of Triton's autotuner: where it looks for its choice, the daemon is asked first.

Autotuner.run is replaced on the class by a descriptor, which makes the dictionary of an autotuner's choices a
Choices, and gives Triton's own run(): a call pays for no function more than before. Triton's run() looks
whether the key of a call is in the dictionary. If it is missing there, Choices asks, with the arguments of
that run(). Without an answer Triton goes on as ever; while there is none yet, a provisional choice is given,
and the next call asks again. Classes that override run() are left alone.
"""

from __future__ import annotations

import dataclasses
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import _fork
from .._asking import warn
from .._ranks_agree import Choice
from ..errors import SealedError
from . import _triton_private as private
from ._own import Own, StaysOwnError
from ._question import Question
from ._sealing import TritonSeal

if TYPE_CHECKING:
    from ._daemon import Asked as Waiting
    from ._daemon import CubindDaemon

_bound = types.MethodType


class Counts:
    """What became of one function's calls that Triton had no choice for. tuning: what runs provisionally."""

    def __init__(self) -> None:
        self.asked = 0
        self.served = 0
        self.tuning = 0
        self.refused: dict[str, str] = {}  # configurations that cannot be launched here, and why
        self.own: dict[str, int] = {}  # how often it stayed Triton's own, by the reason


@dataclasses.dataclass(frozen=True)
class _Asked:
    """configurations: what the answer is a position in."""

    waiting: Waiting
    configurations: list[Any]


@dataclasses.dataclass(frozen=True)
class _Call:
    """A run() of an autotuner that has no choice for its key."""

    name: str
    tuner: Any
    choices: Choices
    key: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Choices(dict[Any, Any]):
    """An autotuner's choices by key."""

    def __init__(self, tuner: Any, patch: Patch, known: dict[Any, Any]) -> None:
        super().__init__(known)
        self._tuner = weakref.ref(tuner)
        self._patch = patch
        self.served: set[Any] = set()
        self.asked: dict[Any, _Asked] = {}  # without an answer yet
        self.provisional: dict[Any, Any] = {}  # once chosen, they stay for threads that have seen them
        self.digests: dict[Any, str] = {}  # of what was asked

    def __contains__(self, key: Any) -> bool:
        if dict.__contains__(self, key):
            return True
        call = private.call_of(sys._getframe(1))
        return call is not None and self._patch.choose(self._tuner(), self, key, *call)

    def __missing__(self, key: Any) -> Any:
        return self.provisional[key]

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)  # a copy of the autotuner is Triton's own


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
    """daemon: may raise whatever it wants, Triton goes on without it. changed: called when the counts are
    others. Safe on many threads as far as Triton is."""

    def __init__(self, daemon: CubindDaemon, seal: TritonSeal, changed: Callable[[], None]) -> None:
        self._daemon: CubindDaemon | None = daemon
        self._seal = seal
        self.changed = changed
        self._tuners: weakref.WeakSet[Any] = weakref.WeakSet()  # guarded by _lock
        self._counts: dict[str, Counts] = {}  # guarded by _lock
        self.after_fork()
        _fork.watch(self)
        self._original: Any = None
        self._run: Any = None

    def after_fork(self) -> None:
        """In the child, whose other threads are gone with the locks that they held."""
        self._lock = threading.Lock()
        self._capturing = threading.RLock()  # held while a kernel's run() is replaced
        for tuner in list(self._tuners):
            if isinstance(tuner.cache, Choices):
                tuner.cache.asked.clear()  # the answers come to the parent
        self._counts = {}

    # ---- In and out ----

    def install(self) -> None:
        self._original = vars(private.Autotuner)["run"]
        self._run = _Run(self._original, self._adopt)
        private.Autotuner.run = self._run

    def uninstall(self) -> None:
        """Put it back, with the choices that are Triton's. Where another patch lies over this one, both stay,
        and this one asks nothing more."""
        if self._run is not None and vars(private.Autotuner)["run"] is self._run:
            private.Autotuner.run = self._original
        daemon, self._daemon = self._daemon, None
        if daemon is not None:
            daemon.close()
        with self._lock:
            for tuner in self._tuners:
                choices = tuner.cache
                if isinstance(choices, Choices):
                    tuner.cache = {key: choices[key] for key in choices if key not in choices.served}
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
        if self._daemon is None or tuner is None or kwargs.get("warmup"):
            return False
        call = _Call(_name_of(tuner), tuner, choices, key, args, kwargs)
        chosen = self._choose(call, self._daemon)
        self.changed()
        if self._daemon is None:  # the tuner has other choices now
            return False
        if isinstance(chosen, _Asked):
            private.announce(tuner, key, dict.__getitem__(choices, key), chosen.waiting.known.times_ms)
        if not isinstance(chosen, Own):
            return True
        self._seal.refuse_own("tune", call.name, str(key), chosen)
        return False

    def _choose(self, call: _Call, daemon: CubindDaemon) -> Own | _Asked | None:
        """What was asked and served; None: there is a provisional choice. Else why Triton makes it."""
        choices, key = call.choices, call.key
        try:
            if private.is_capturing():  # nothing can be asked or loaded
                if key in choices.provisional:
                    return None
                raise StaysOwnError("is first called while a CUDA graph is captured")
            asked = choices.asked.get(key) or self._ask(daemon, call)
            answer = asked.waiting.answer()
            if answer is None:
                return self._choose_for_now(call, asked)
            self._end(call)
            if not isinstance(answer, Own):
                self._serve(call, asked, answer)
                return asked
            self._stays_own(call.name, answer)
            return answer
        except StaysOwnError as error:
            self._stays_own(call.name, error.own)
            return error.own
        except SealedError:  # of the compile
            raise
        except Exception as error:
            warn(f"{call.name} is tuned by Triton: {type(error).__name__}: {error}", f"triton {call.name}")
            return Own(f"has no choice: {type(error).__name__}: {error}")

    def _ask(self, daemon: CubindDaemon, call: _Call) -> _Asked:
        with self._capturing:
            question = Question(call.tuner, call.key, call.args, call.kwargs)
        self._count(call.name).asked += 1
        call.choices.digests[call.key] = question.hint
        return _Asked(daemon.ask(question), question.configurations)

    def _choose_for_now(self, call: _Call, asked: _Asked) -> Own | None:
        """The first configuration that can be launched. If there is none, Triton says so."""
        choices = call.choices
        if call.key not in choices.provisional:
            first = private.first_loaded(call.tuner, asked.configurations, call.args, call.kwargs)
            if first is None:
                return Own("has no configuration that can be launched")
            choices.provisional[call.key] = first
        if call.key not in choices.asked:
            choices.asked[call.key] = asked
            self._count(call.name).tuning += 1
        return None

    def _serve(self, call: _Call, asked: _Asked, answer: int) -> None:
        if type(answer) is not int or not 0 <= answer < len(asked.configurations):
            raise ValueError(f"the daemon chose configuration {answer!r} of {len(asked.configurations)}")
        choice = asked.configurations[answer]
        private.load(call.tuner, choice, call.args, call.kwargs)
        call.choices.served.add(call.key)
        dict.__setitem__(call.choices, call.key, choice)
        count = self._count(call.name)
        count.served += 1
        for index, why in asked.waiting.known.refused.items():
            count.refused[str(asked.configurations[index])] = why

    def _end(self, call: _Call) -> None:
        if call.choices.asked.pop(call.key, None) is not None:
            self._count(call.name).tuning -= 1

    # ---- Counts ----

    def _count(self, name: str) -> Counts:
        with self._lock:
            return self._counts.setdefault(name, Counts())

    def _stays_own(self, name: str, own: Own) -> None:
        counts = self._count(name).own
        counts[own.reason] = counts.get(own.reason, 0) + 1
        if not own.is_said:
            warn(f"{name} stays Triton's own: it {own.reason}", f"triton {name} {own.reason}")

    def counts(self) -> dict[str, Counts]:
        """By the name of the function."""
        with self._lock:
            return dict(self._counts)

    def choices(self) -> list[Choice]:
        """What each autotuned kernel runs for each key that was called."""
        with self._lock:
            tuners = [tuner for tuner in self._tuners if isinstance(tuner.cache, Choices)]
        return [
            Choice(_name_of(tuner), str(key), str(configuration), tuner.cache.digests.get(key, ""))
            for tuner in tuners
            for key, configuration in {**tuner.cache.provisional, **tuner.cache}.items()
        ]


def _name_of(tuner: Any) -> str:
    function = tuner.base_fn
    return f"{function.__module__}.{function.__qualname__}"
