"""What a cubind daemon chooses for Triton's autotuner: it is asked by name, and gets the definition of a name
that it does not know.

The questions go out on background threads. A call waits for 50 ms at most, or until the kernel is tuned if
that is what its caller wants; a daemon that is absent, dies or stops costs no call more.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from typing import Any

from .. import _fork, _wire
from .. import question as asking
from .._asking import PATIENCE, Asker, Lookup
from .._connected import Connected
from .._tables import trials
from ..client import Client
from ..errors import CubindError, DataLossError, DeadlineExceededError, UnavailableError
from . import _triton_private as private
from ._contents import may_go_to
from ._own import Known, Own, StaysOwnError
from ._question import Question
from ._recording import Record
from ._spec import TUNABLE, Spec, spec_of
from ._variant_calls import Target, defined_variant, hinted_variant, variant

_NO_DEVICE = "no_device"  # the state of a job that no agent can run
_GPU_IN_USE = "waiting_for_idle_gpu"  # its state while others work there
_NOT_LAUNCHED = ("compile", "constraint", "launch")  # outcomes of configurations that this GPU does not take
_NO_WAIT_AFTER_USE = 60.0  # seconds for which no call waits for a GPU that another one has waited for in vain
_CALL_TIMEOUT = 5.0  # seconds: the daemon waits for nothing within such a call
_LONGEST_TUNING = 600.0  # seconds for which Triton's first configuration runs
_THREADS = 8  # that ask: as many callers wait for their tunings at the same time
_MOST_PENDING = 1000  # questions, which are asked again each second
_VAIN_WAITS = 5  # questions that wait and find nothing to wait for: then no call waits


class _Deadline:
    """Callers take another choice after that many seconds: `instead`."""

    def __init__(self, seconds: float) -> None:
        self.instead = Own(f"was not tuned within {seconds:g} s")
        self._until = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds; below 0 afterwards."""
        return self._until - time.monotonic()


class Asked:
    """A question under way until the deadline. Safe on many threads."""

    def __init__(self, lookup: Lookup, asker: Asker, deadline: _Deadline, known: Known) -> None:
        self.lookup = lookup
        self.known = known
        self._asker = asker
        self._deadline = deadline

    def wait(self) -> None:
        self._asker.wait_for(self.lookup, self._deadline.left())

    def answer(self) -> int | Own | None:
        """The configuration, or why Triton chooses; None: not yet."""
        lookup, failure = self.lookup, self._asker.failure
        if lookup.answer is not None:
            return lookup.answer
        if lookup.error is not None:
            return Own(f"has no answer of the daemon: {lookup.error}")
        if failure is not None:
            return Own(f"has no answer of the daemon: {failure}", is_said=True)
        return self._deadline.instead if self._deadline.left() <= 0 else None


class CubindDaemon:
    """The daemon of a client, or of cubind.connect() if that is None. Safe on many threads.

    waits: whether a call waits until the kernel is tuned, for timeout seconds at most; else Triton's first
        configuration runs until then. patience: seconds that a call waits otherwise. record: called with each
        kernel that is asked for.
    """

    def __init__(
        self,
        client: Client | None,
        waits: bool,
        timeout: float,
        patience: float = PATIENCE,
        record: Record | None = None,
    ) -> None:
        self.connected = Connected()
        self.connected.use(client)
        self._waits = waits
        self._timeout = timeout
        self._record = record
        self._asker = Asker(
            patience,
            instead="Triton's own autotuner chooses",
            again="from time to time, for later kernels",
            threads=_THREADS,
        )
        self.after_fork()
        _fork.watch(self)

    def after_fork(self) -> None:
        """In the child, whose questions are under way in the parent."""
        self._lock = threading.Lock()
        self._asked: dict[tuple[str, int], Asked] = {}  # by hint and GPU; guarded by _lock
        self._in_use: dict[int, float] = {}  # until when no call waits for a GPU

    def close(self) -> None:
        self._asker.close()

    def ask(self, question: Question) -> Asked:
        """Asks, and waits as long as the callers do. Raises StaysOwnError if too many wait already."""
        device = private.current_device()
        with self._lock:
            asked = self._asked.get((question.hint, device))
            is_new = asked is None
            if asked is None:
                asked = self._asked[question.hint, device] = self._new(question, device)
        if is_new:
            if self._record is not None and not isinstance(spec := _specified(question, may_go_to("")), Own):
                self._record(spec, device)
            self._asker.submit(asked.lookup)
        if self._waits:
            asked.wait()
        elif is_new:
            self._asker.wait_briefly(asked.lookup)
        return asked

    def _new(self, question: Question, device: int) -> Asked:
        if self._asker.pending() >= _MOST_PENDING:
            raise StaysOwnError(f"is one of more than {_MOST_PENDING} that wait for their tuning")
        question.compiling = self._asker.foreign_code
        deadline = _Deadline(self._timeout if self._waits else _LONGEST_TUNING)
        answering = _Answering(self.connected, question, device, self._waits, deadline, self._in_use)
        return Asked(Lookup(answering, _let_go), self._asker, deadline, answering.known)


class _Answering:
    """Finds the answer to one question, on a background thread.

    waits: whether the callers wait for it. in_use: until when no call waits for a GPU (time.monotonic()
        seconds), which is set where others use it.
    """

    def __init__(
        self,
        connected: Connected,
        question: Question,
        device: int,
        waits: bool,
        deadline: _Deadline,
        in_use: dict[int, float],
    ) -> None:
        self._connected = connected
        self._question = question
        self._device = device
        self._waits = waits
        self._deadline = deadline
        self._in_use = in_use
        self.known = Known()
        self._is_late = False  # the callers run something else meanwhile
        self._vain_waits = 0

    def __call__(self) -> int | Own:
        """Raises UnavailableError without a field while the kernel is tuned: it is called again then."""
        try:
            with self._connected.asked() as client:
                found = self._ask(client)
        except UnavailableError:
            self._is_late = True
            raise
        if self._is_late and not isinstance(found, Own):
            self._question.compile_ahead(found)
        return found

    def _ask(self, client: Client) -> int | Own:
        in_use = time.monotonic() < self._in_use.get(self._device, 0.0)
        is_over = self._deadline.left() <= 0  # a job is started for the next process
        waits = self._waits and not in_use and not is_over
        # The job of a caller that waits is started by the question that lends its GPU: a job that begins
        # without the lend finds the GPU in use. And a process that agrees with no other one pins no
        # generation: it would never see the winner.
        question = asking.Question(job=None if self._waits else "", tune=not waits)
        values = may_go_to(client.address)
        target = Target("", self._question.problem, self._question.hint_with(values), self._device)
        try:
            reply = hinted_variant(client, target, question, _CALL_TIMEOUT)
            if reply is None:
                spec = _specified(self._question, values)
                if isinstance(spec, Own):
                    return spec
                target = dataclasses.replace(target, name=spec.name)  # a reader's hint is not kept
                reply = defined_variant(client, spec, target, question, _CALL_TIMEOUT)
        except UnavailableError as error:
            if error.field or not (waits or is_over):
                raise
            return self._tuned(client, target) if waits else self._deadline.instead
        found = self._choice(reply)
        if waits and not isinstance(found, int):
            return self._tuned(client, target)
        if waits and reply.why:  # there may be a better one: a job looks for it behind the answer
            with contextlib.suppress(CubindError):
                variant(client, target, dataclasses.replace(question, tune=True), _CALL_TIMEOUT)
        if found is not None:
            return found
        if is_over:
            return self._deadline.instead
        if self._waits:
            return Own("is not tuned: another process used the GPU within the last minute")
        raise UnavailableError("it is being tuned")

    def _tuned(self, client: Client, target: Target) -> int | Own:
        """By a question that waits: it gets what was measured after the ranks' job pinned its generation."""
        # The caller's GPU is lent while the caller waits: it launches nothing meanwhile.
        question = asking.Question(on_miss="wait")
        try:
            reply = variant(client, target, question, self._deadline.left())
        except DeadlineExceededError:
            raise UnavailableError("it is being tuned") from None  # or the question never got there
        except UnavailableError as error:
            self._vain_waits += 1
            if error.field or self._vain_waits < _VAIN_WAITS:
                raise
            return Own(f"is not tuned: {error}")
        if reply.job_state == _GPU_IN_USE:
            self._in_use[self._device] = time.monotonic() + _NO_WAIT_AFTER_USE
        found = self._choice(reply)
        if isinstance(found, int):
            with contextlib.suppress(CubindError):
                for trial in trials(client._connection, reply.kernel, _CALL_TIMEOUT):
                    if trial["outcome"] in _NOT_LAUNCHED:
                        self.known.refused[trial["configuration"][TUNABLE]] = trial.get("detail", "")
        return Own(f"is not tuned: {reply.why}") if found is None else found

    def _choice(self, reply: Any) -> int | Own | None:
        """The measured configuration; None while a job measures or will."""
        if reply.provenance.evidence != _wire.messages().NONE:
            values = {value.name: value.value for value in reply.configuration.values}
            index = int(values.get(TUNABLE, -1))
            if not 0 <= index < len(self._question.configurations):
                raise DataLossError(f"configuration {index} is none of the kernel's", "configuration")
            measured = reply.provenance
            times_us = measured.timing.median_us, measured.timing.low_us, measured.timing.high_us
            self.known.times_ms = [time_us / 1e3 for time_us in times_us]
            return index
        if reply.job_id and reply.job_state != _NO_DEVICE:
            return None
        return Own(f"is not tuned: {reply.why or 'the daemon has started no job'}")


def _let_go(lookup: Lookup) -> None:
    """Of a question that is asked no more, which holds up to 64 MiB of TTIR."""
    lookup.ask = lambda: None


def _specified(question: Question, with_values: bool) -> Spec | Own:
    """No error of Triton's is one of the daemon's."""
    try:
        return spec_of(question.definition, with_values)
    except StaysOwnError as error:
        return Own(str(error))
    except Exception as error:
        return Own(f"has no definition: {type(error).__name__}: {error}"[:256])
