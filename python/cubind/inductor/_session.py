"""What a process with install() has asked, been served and stored."""

from __future__ import annotations

import collections
import os
import threading
import time
from collections.abc import Callable

from .. import _fork, _ranks, _sealing
from .._asking import warn
from ..errors import CubindError, UnavailableError
from ._answers import Answers
from ._question import Choice, Question

_RANK_PATIENCE = 20.0  # seconds that a rank waits for the choice of the first one
_POLL = 0.1
_QUICK = 0.1  # seconds of a call that cost no patience
_PATIENCE = 20.0  # seconds that slow calls may take in all


class Counts:
    """Choices by what became of them. own: why Inductor chose, how often. foreign: what Inductor measured
    besides, by the operation's name."""

    def __init__(self) -> None:
        self.served = 0
        self.stored = 0
        self.measured: set[str] = set()  # questions, by their digests
        self.own: collections.Counter[str] = collections.Counter()
        self.foreign: collections.Counter[str] = collections.Counter()


class Session:
    """The handler of _private.Hooks. Safe on many threads. tag: of the graphs whose choices are the store's.
    failed: called once, when the daemon is asked no more."""

    def __init__(self, answers: Answers, tag: str, failed: Callable[[], None]) -> None:
        self.tag = tag
        self.counts = Counts()
        # What the graphs of this process have, by digest.
        self.chosen: dict[str, tuple[Question, Choice]] = {}
        self._answers: Answers | None = answers
        self._failed = failed
        self._stored: dict[str, Choice] = {}  # by digest
        self._graph = threading.local()  # lost: this thread's graph has a choice that is not the stored one
        self._waits = _rank() > 0
        self._late = 0.0  # seconds
        self._lock = _fork.Lock()  # of all but _graph

    @property
    def is_lost(self) -> bool:
        return self._answers is None

    # ---- What Inductor asks ----

    def ask(self, question: Question) -> Choice | None:
        """The stored choice, which the graph gets. Raises SealedError if there is none."""
        stored = self.known(question)
        if stored is None:
            self.refuse(question)
        return stored

    def refuse(self, question: Question) -> None:
        """Inductor is about to measure. Raises SealedError."""
        count = len(question.candidates) or "many"
        _sealing.program.refuse(f"Inductor would measure its {count} candidates", question.what)

    def known(self, question: Question) -> Choice | None:
        """The same of a question that Inductor may have no need to measure."""
        stored = self._ask(question)
        if stored is not None:
            with self._lock:
                self.counts.served += 1
                self.chosen[question.digest] = question, stored
        return stored

    def decide(self, question: Question, measured: Choice) -> Choice:
        """What the graph gets where Inductor has measured: the stored choice, which may be that one."""
        stored = self._wait_for_first_rank(question) if self._waits else None
        taken = stored or self._offer(question, measured) or measured
        with self._lock:
            self.counts.measured.add(question.digest)
            self.chosen[question.digest] = question, taken
        return taken

    def differs(self, question: Question, choice: Choice) -> None:
        """The graph has that one, though another one is stored."""
        self._graph.lost = True
        with self._lock:
            self.chosen[question.digest] = question, choice

    def foreign(self, name: str) -> None:
        """Inductor has measured candidates that it did not ask for."""
        with self._lock:
            self.counts.foreign[name] += 1

    def stays_own(self, reason: str) -> None:
        """A product whose choice is not asked for."""
        with self._lock:
            self.counts.own[reason] += 1

    def may_keep(self) -> bool:
        """Whether the graph that this thread has compiled may be cached. The next graph begins."""
        is_lost = getattr(self._graph, "lost", False)
        self._graph.lost = False
        return not is_lost

    # ---- The daemon ----

    def _ask(self, question: Question) -> Choice | None:
        return self._stored_now(question, lambda answers: answers.ask(question))

    def _offer(self, question: Question, measured: Choice) -> Choice | None:
        stored = self._stored_now(question, lambda answers: answers.offer(question, measured))
        with self._lock:
            self.counts.stored += stored is measured
        return stored

    def _stored_now(self, question: Question, call: Callable[[Answers], Choice | None]) -> Choice | None:
        with self._lock:
            stored = self._stored.get(question.digest)
        if stored is None and (stored := self._called(call)) is not None:
            with self._lock:
                self._stored[question.digest] = stored
        return stored

    def _wait_for_first_rank(self, question: Question) -> Choice | None:
        until = time.monotonic() + _RANK_PATIENCE
        while (stored := self._ask(question)) is None and self._waits and self._answers is not None:
            if time.monotonic() > until:
                self._waits = False  # the first rank compiles something else
            time.sleep(_POLL)
        return stored

    def _called(self, call: Callable[[Answers], Choice | None]) -> Choice | None:
        answers = self._answers  # which another thread may let go
        if answers is None:
            self._graph.lost = True
            return None
        try:
            began = time.monotonic()
            given = call(answers)
            self._late += max(0.0, time.monotonic() - began - _QUICK)
            if self._late > _PATIENCE:
                raise UnavailableError(f"slow calls to the daemon took {_PATIENCE:.0f} s in all", "inductor")
            return given
        except Exception as error:
            said = error if isinstance(error, CubindError) else f"{type(error).__name__}: {error}"
            self._graph.lost = True
            self._answers = None
            warn(f"Inductor measures by itself, without cubind: {said}", "inductor")
            self._failed()
            return None


def _rank() -> int:
    rank = os.environ.get("RANK", "")
    return int(rank) if rank.isdecimal() and _ranks.are_several() else 0
