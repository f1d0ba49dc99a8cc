"""Kernels that a daemon's agent has compiled, for Triton's cache.

A kernel is asked for by a hint, which is Triton's own key, and by the digest of its TTIR and options if the
daemon does not know the hint. One that it does not know either is defined by the same question, so that its
agent compiles it for the next process, while Triton compiles it here.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import threading
from collections.abc import Callable
from typing import Any

from .. import _fork, _wire
from .._asking import PATIENCE, Asker, Lookup, warn
from .._connected import Connected
from ..client import Client
from ..errors import CubindError, DataLossError, UnavailableError
from ..question import Question
from . import _triton_private as private
from ._compile_question import Kernel
from ._own import Own, StaysOwnError
from ._recording import Record
from ._single import PROBLEM
from ._triton_cache import Compiled, Compiling
from ._variant_calls import Target, defined_variant, hinted_variant

_CALL_TIMEOUT = 5.0  # seconds: the daemon waits for nothing within such a call
_MAX_SHARED_BYTES = 1 << 20
_COMPILES = Own("is being compiled by the daemon's agent")
_NO_ANSWER = Own("has no answer of the daemon yet")
_NO_GPU = Own("is compiled in a process that uses no GPU")  # a worker of torch.compile
_UNKNOWN = Own("is not known to the daemon")
_UNSIGNED = Own("would come without a signature, which CUBIND_TRUST asks for")
_QUESTION = Question(tune=False, job="")


class Artifacts:
    """patience: seconds that a compile waits for an answer, and not at all while the last one that was waited
    for has not come. record: called with each kernel that is asked for. Safe on many threads."""

    def __init__(
        self, connected: Connected, patience: float = PATIENCE, record: Record | None = None
    ) -> None:
        self._connected = connected
        self._patience = patience
        self._record = record
        self._asker = Asker(
            patience,
            instead="Triton compiles its kernels itself",
            again="from time to time, for later kernels",
        )
        self.changed: Callable[[], None] = lambda: None  # called when the counts are others
        self.after_fork()
        _fork.watch(self)

    def after_fork(self) -> None:
        """In the child, whose questions are under way in the parent."""
        self._lock = threading.Lock()  # of the counts
        self.served = 0
        self.missed: dict[str, int] = {}  # by the reason
        self._slow: Lookup | None = None  # the last question that was waited for in vain

    def close(self) -> None:
        self._asker.close()

    def connect(self) -> None:
        """Connect in the background, before the first kernel. If there is no daemon, that one says so."""
        request = _wire.messages().GetStatusRequest()

        def connect() -> bool:
            with contextlib.suppress(CubindError):
                self._connected.connected()._connection.unary("GetStatus", request, _CALL_TIMEOUT)
            return True

        self._asker.submit(Lookup(connect, lambda _: None))

    def find(self, compiling: Compiling) -> Compiled | Own:
        """The kernel, or why Triton compiles it."""
        answer: Compiled | Own
        try:
            answer = self._ask(Kernel(compiling))
        except StaysOwnError as error:
            answer = error.own
        except Exception as error:
            warn(f"Triton compiles a kernel itself: {type(error).__name__}: {error}", "triton compile")
            answer = Own(f"was not asked for: {type(error).__name__}")
        with self._lock:
            if isinstance(answer, Own):
                self.missed[answer.reason] = self.missed.get(answer.reason, 0) + 1
            else:
                self.served += 1
        self.changed()
        return answer

    def _ask(self, kernel: Kernel) -> Compiled | Own:
        if not private.uses_gpu():
            return _NO_GPU
        failure, device = self._asker.failure, private.current_device()
        if self._record is not None:
            self._record(kernel.spec, device)
        if failure is not None:
            return Own(f"has no answer of the daemon: {failure}")
        asking = _Asking(self._connected, self._asker, kernel, device)
        if self._slow is not None and not self._slow.is_settled:
            self._asker.submit(Lookup(asking, lambda _: None))
            return _NO_ANSWER
        found = self._answer(asking.by_hint)
        if found is _UNKNOWN:
            kernel.spec  # noqa: B018  here, where time is no matter of patience
            return self._answer(asking)
        if found is _NO_ANSWER:
            self._asker.submit(Lookup(asking, lambda _: None))
        return found

    def _answer(self, asking: Callable[[], Compiled | Own]) -> Compiled | Own:
        """Within the patience."""
        lookup = Lookup(asking, lambda _: None)
        self._asker.submit(lookup)
        self._asker.wait_for(lookup, self._patience)
        self._slow = None if lookup.is_settled else lookup
        if lookup.error is not None:
            why = re.sub(r"^(kernel|hint) \S+: ", "", str(lookup.error))
            return Own(f"has no answer of the daemon: {why}")
        return lookup.answer or _NO_ANSWER


class _Asking:
    """One question, on the background thread."""

    def __init__(self, connected: Connected, asker: Asker, kernel: Kernel, device: int) -> None:
        self._connected = connected
        self._asker = asker
        self._kernel = kernel
        self._target = Target("", PROBLEM, kernel.hint, device)

    def by_hint(self) -> Compiled | Own:
        """The kernel of the hint; _UNKNOWN: the daemon does not know it."""
        return self._compiled(lambda client: hinted_variant(client, self._target, _QUESTION, _CALL_TIMEOUT))

    def __call__(self) -> Compiled | Own:
        """The kernel, which is defined if the daemon does not know it."""
        try:
            with self._asker.foreign_code():
                spec = self._kernel.spec  # first: no error of Triton's is one of the daemon's
        except StaysOwnError as error:
            return error.own
        return self._compiled(
            lambda client: defined_variant(client, spec, self._target, _QUESTION, _CALL_TIMEOUT)
        )

    def _compiled(self, ask: Callable[[Client], Any]) -> Compiled | Own:
        try:
            with self._connected.asked() as client:
                if client._trust:
                    return _UNSIGNED
                if (reply := ask(client)) is None:
                    return _UNKNOWN
                cubin = client.cubin_of(reply.artifact, reply.artifact.zstd_cubin)
                return _checked(reply, self._kernel, cubin)
        except UnavailableError as error:
            if not error.field:
                return _COMPILES
            raise


def _checked(reply: Any, kernel: Kernel, cubin: bytes) -> Compiled:
    """Raises DataLossError for the cubin of another question."""
    if hashlib.sha256(cubin).digest() != reply.artifact.digest:
        raise DataLossError(
            f"the cubin of {reply.kernel} does not have the digest that was promised", "artifact"
        )
    architecture = f"sm_{kernel.compiling.source.target.arch}"
    if reply.artifact.architecture != architecture:
        raise DataLossError(
            f"asked for {architecture}, the cubin is for {reply.artifact.architecture}",
            "artifact.architecture",
        )
    if len(reply.artifact.entries) != 1:
        raise DataLossError(
            f"the cubin of {reply.kernel} has {len(reply.artifact.entries)} entries", "artifact.entries"
        )
    entry = reply.artifact.entries[0]
    shared = int(entry.launch_shared_bytes)
    if shared > _MAX_SHARED_BYTES:
        raise DataLossError(f"{shared} bytes of shared memory, which no GPU has", "artifact.entries")
    return Compiled(cubin, entry.entry_symbol, shared)
