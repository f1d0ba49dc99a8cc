"""Questions to the daemon on background threads, for callers that must not wait for the answers."""

from __future__ import annotations

import atexit
import contextlib
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from . import _fork
from ._text import printable
from .errors import AbortedError, CubindError, InternalError, UnavailableError

_INSTEAD = "torch's own operators are used, without cubind's kernels"
_AGAIN = "from time to time, and at once by cubind.torch.wait()"

PATIENCE = 0.05  # seconds that a launch waits for an answer, once for each question
_FIRST_DELAY = 1.0  # seconds from a failure of the daemon to the next question; doubled by each one
_LONGEST_DELAY = 60.0
_EXIT_PATIENCE = 1.0  # seconds that the end of the process waits for the thread

# Codes of errors of one question. All others mean that nothing can be expected of the daemon.
_OF_ONE_QUESTION = {
    "ABORTED", "ALREADY_EXISTS", "FAILED_PRECONDITION", "INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
}  # fmt: skip


class Lookup:
    """One question: on its way until it has an answer or an error of its own.

    ask: gives the answer; called on a background thread. settled: called there afterwards; what it raises
    is warned of.
    """

    def __init__(self, ask: Callable[[], Any], settled: Callable[[Lookup], None]) -> None:
        self.ask = ask
        self.settled = settled
        self.answer: Any = None
        self.error: CubindError | None = None
        self.has_waiter = False  # a caller has waited for it
        self.not_before = 0.0  # time.monotonic() seconds

    @property
    def is_settled(self) -> bool:
        return self.answer is not None or self.error is not None


class Asker:
    """Asks questions in their order on background threads, which live as long as there are any.

    If the daemon fails, no question fails: it is asked again after a while, and the failure is warned of
    once. Safe on many threads; a forked child begins without questions. instead, again: what the warning says
    of the callers, and of when the daemon is asked again. threads: questions that are asked at the same time.
    """

    def __init__(
        self,
        patience: float = PATIENCE,
        first_delay: float = _FIRST_DELAY,
        instead: str = _INSTEAD,
        again: str = _AGAIN,
        threads: int = 1,
    ) -> None:
        self._patience = patience
        self._first_delay = first_delay
        self._instead = instead
        self._again = again
        self._most_threads = threads
        self.waited = 0.0  # seconds that callers have waited in all
        self.after_fork()
        _fork.watch(self)
        atexit.register(self._end)

    def after_fork(self) -> None:
        """In the child, which has neither the thread nor waiting callers."""
        self._changed = threading.Condition()
        # Guarded by _changed.
        self._pending: list[Lookup] = []
        self._asked: dict[threading.Thread, Lookup | None] = {}  # by each thread; None: it waits for one
        self._closed = False
        self._in_foreign_code = 0  # threads
        self._epoch = 0  # of the daemon that is asked
        self._failures = 0  # of any daemon
        self._attempted_at = 0.0
        self._spent, self._rested_at = 0.0, 0.0  # of the patience, until when
        self._forget_failure()

    def _forget_failure(self) -> None:
        self.failure: CubindError | None = None  # of the daemon, since its last answer
        self._delay = 0.0
        self._retry_at = 0.0
        self._is_silent = False  # a caller waited in vain since the last answer
        self._has_warned = False

    def pending(self) -> int:
        with self._changed:
            return len(self._pending)

    def submit(self, lookup: Lookup) -> None:
        with self._changed:
            self._pending.append(lookup)
            self._wake()
        self._warn_of_failure()

    def wait_briefly(self, lookup: Lookup) -> None:
        """Waits for the answer, for at most 50 ms, once for each question, and not at all while the daemon
        fails or has let another caller wait in vain. Calls that follow each other at once share the 50 ms:
        one operator may be made of several."""
        with self._changed:
            if lookup.has_waiter or lookup.is_settled or self._is_silent or self.failure is not None:
                return
            lookup.has_waiter = True
            start = time.monotonic()
            spent = self._spent if start - self._rested_at < self._patience else 0.0
            self._changed.wait_for(
                lambda: lookup.is_settled or self.failure is not None, self._patience - spent
            )
            self._rested_at = time.monotonic()
            self._spent = min(spent + self._rested_at - start, self._patience)
            self.waited += self._rested_at - start
            self._is_silent = not lookup.is_settled

    def wait_for(self, lookup: Lookup, timeout: float) -> None:
        """Waits for the answer, but no longer than the daemon is asked and answers at all."""
        with self._changed:
            self._changed.wait_for(
                lambda: lookup.is_settled or self.failure is not None or self._closed, timeout
            )

    def wait(self, timeout: float) -> bool:
        """Asks at once and waits until all questions are settled. False: the daemon fails, or time is up."""
        with self._changed:
            failures = self._failures
            self._retry_at = 0.0
            for lookup in self._pending:
                lookup.not_before = 0.0
            self._wake()
            self._changed.wait_for(lambda: not self._pending or self._failures > failures, timeout)
            return not self._pending

    def hurry(self) -> None:
        """Asks a daemon that failed again, but not too often: an attempt may start a private daemon."""
        with self._changed:
            if self.failure is not None:
                self._retry_at = min(self._retry_at, self._attempted_at + 10 * self._first_delay)
                self._wake()

    def start_anew(self) -> None:
        """Another daemon is asked from now on: what the last one has not answered too."""
        with self._changed:
            self._epoch += 1
            self._asked = {}  # the last ones may wait long for their answers
            self._forget_failure()
            self._wake()

    def drop(self, lookup: Lookup) -> None:
        """The answer is no longer wanted."""
        with self._changed:
            if lookup in self._pending:
                self._pending.remove(lookup)

    def close(self) -> None:
        """Asks nothing more. Questions under way are given a moment to end: a thread that is stopped within
        one by the end of the process could bring the process down."""
        with self._changed:
            self._closed = True
            threads = list(self._asked)
            self._changed.notify_all()
        until = time.monotonic() + _EXIT_PATIENCE
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))

    @contextlib.contextmanager
    def foreign_code(self) -> Iterator[None]:
        """Around what a question runs of another package's C++. Stopped on the way, it would bring the
        process down, whose end waits for it. Raises AbortedError if nothing more is asked."""
        with self._changed:
            if self._closed:
                raise AbortedError("nothing more is asked", "cubind")
            self._in_foreign_code += 1
        try:
            yield
        finally:
            with self._changed:
                self._in_foreign_code -= 1
                self._changed.notify_all()

    def _end(self) -> None:
        """At the end of the process."""
        self.close()
        with self._changed:
            self._changed.wait_for(lambda: not self._in_foreign_code)

    # With _changed held. If no thread can be started, it is tried again when next called.
    def _wake(self) -> None:
        if len(self._asked) < min(len(self._pending), self._most_threads) and not self._closed:
            thread = threading.Thread(target=self._run, name="cubind", daemon=True)
            self._asked[thread] = None
            try:
                thread.start()
            except RuntimeError as error:
                del self._asked[thread]
                if not self._asked:
                    self._fail(InternalError(f"no thread to ask the daemon: {error}", "cubind"))
        self._changed.notify_all()

    # ---- On the thread ----

    def _run(self) -> None:
        while (found := self._next()) is not None:
            lookup, epoch = found
            answer: Any = None
            error: CubindError | None = None
            try:
                answer = lookup.ask()
            except CubindError as caught:
                error = caught
            except Exception as caught:  # a fault of cubind's own is no reason to stop a training
                error = InternalError(f"{type(caught).__name__}: {caught}", "cubind")
            self._settle(lookup, epoch, answer, error)

    # The next question, when its time has come; None ends the thread.
    def _next(self) -> tuple[Lookup, int] | None:
        thread = threading.current_thread()
        with self._changed:
            if thread in self._asked:
                self._asked[thread] = None
            while not self._closed and thread in self._asked:
                under_way = [lookup for lookup in self._asked.values() if lookup is not None]
                left = [lookup for lookup in self._pending if lookup not in under_way]
                if not left:
                    break
                first = min(left, key=lambda lookup: lookup.not_before)
                delay = max(first.not_before, self._retry_at) - time.monotonic()
                # One question finds out whether a daemon that failed answers again.
                is_probed = self.failure is not None and bool(under_way)
                if delay <= 0 and not is_probed:
                    self._attempted_at = time.monotonic()
                    self._asked[thread] = first
                    return first, self._epoch
                self._changed.wait(None if is_probed else delay)
            self._asked.pop(thread, None)
            return None

    def _settle(self, lookup: Lookup, epoch: int, answer: Any, error: CubindError | None) -> None:
        with self._changed:
            if epoch != self._epoch or lookup not in self._pending:
                return
            if error is not None and not _is_of_one_question(error):
                self._fail(error)
                # All others come first: perhaps it is only this question that the daemon fails at.
                lookup.not_before = time.monotonic()
                self._pending.remove(lookup)
                self._pending.append(lookup)
            else:
                self.failure, self._delay, self._retry_at, self._is_silent = None, 0.0, 0.0, False
                if _is_not_yet(error):
                    lookup.not_before = time.monotonic() + self._first_delay
                else:
                    self._pending.remove(lookup)
                    lookup.answer, lookup.error = answer, error
        if lookup.is_settled:
            try:
                lookup.settled(lookup)
            except Exception as caught:  # the thread has other questions
                warn(f"an answer was not taken over: {type(caught).__name__}: {caught}")
        self._warn_of_failure()
        with self._changed:  # after what a waiter may look at
            self._changed.notify_all()

    def _warn_of_failure(self) -> None:
        with self._changed:
            failure = self.failure
            if failure is None or self._has_warned:
                return
            self._has_warned = True
        warn(
            f"{self._instead}: {failure}. The daemon is asked again {self._again}; CUBIND=0 turns cubind off"
        )

    # With _changed held.
    def _fail(self, error: CubindError) -> None:
        self.failure = error
        self._failures += 1
        now = time.monotonic()
        if now >= self._retry_at:  # else others have met the same failure
            self._delay = min(2 * self._delay or self._first_delay, _LONGEST_DELAY)
            self._retry_at = now + self._delay


def _is_of_one_question(error: CubindError) -> bool:
    return error.code in _OF_ONE_QUESTION or _is_not_yet(error)


# The daemon lives, and will have an answer later.
def _is_not_yet(error: CubindError | None) -> bool:
    return isinstance(error, UnavailableError) and not error.field


_warned: set[str] = set()


def warn(message: str, about: str = "") -> None:
    """A RuntimeWarning, the first time for what it is about, by default for the message. Never an exception,
    whatever warnings.showwarning is: the caller computes without cubind."""
    about = about or message
    if about in _warned:
        return
    _warned.add(about)
    try:
        warnings.warn(printable(f"cubind: {message}"), RuntimeWarning, stacklevel=2)
    except Exception as error:  # a RuntimeWarning with python -W error
        with contextlib.suppress(Exception):  # stderr may be closed
            print(error, file=sys.stderr)
