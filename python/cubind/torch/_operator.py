"""The kernels of the operators: asked for in the background, loaded by the next call, replaced by step() and
wait() alone."""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from .. import _core, _fork, _wire
from .._asking import Asker, Lookup, warn
from .._connection import import_grpc
from .._loading import load
from .._switch import IS_OFF
from .._wire import Problem
from ..errors import CubindError, DataLossError, FailedPreconditionError
from ..question import Question
from ._call import Call
from ._gpu import is_capturing, on_device
from ._known_variants import KnownVariants
from ._recomputed import Recomputation
from ._renewals import Renewals
from ._variants import TYPES, Collection, Found, Key, Loaded, Need, current, settings

_MAX_VARIANTS = 64  # of one key
_MAX_ALONE = 16  # of these such that hold for one problem, since nothing in its bucket is tuned
_RETRY_AFTER = 1.0  # seconds from one step() that asks again for what was missing to the next


asker = Asker()
_recomputation = Recomputation()
if not IS_OFF:
    import_grpc()  # by the background thread, a call would wait for longer than 50 ms


class Operator:
    """One kernel, which its calls launch. dims, flags: the spec's names. known: the dims that are not
    bucketed, by which variants are told apart; None: all but the first. Safe on many threads.

    A key is asked for once. Unless settings.raises, the background thread asks, and the variant is loaded by
    the first call after the answer, or between two steps (Recomputation); a variant in use is replaced by
    step() and wait() alone.
    """

    def __init__(
        self,
        kernel: str,
        dims: tuple[str, ...],
        flags: tuple[str, ...] = (),
        known: tuple[str, ...] | None = None,
    ) -> None:
        self.name = kernel
        self.dims = dims
        self.known = dims[1:] if known is None else known
        self.flags = flags
        self.asked = 0  # questions
        self.fallbacks = 0  # calls that torch's own function took, with a look here
        self._variants = KnownVariants()
        self._start_over()
        _operators.add(self)
        _fork.watch(self)

    def _start_over(self) -> None:
        self._lock = threading.Lock()
        # Guarded by _lock, as the variants are, but for single reads.
        self._lookups: dict[Key, tuple[Lookup, tuple[int, ...]]] = {}  # under way, or failed; with their dims
        self._renewals = Renewals(self.name, asker)
        self._reopened: set[Key] = set()  # by step(): no call waits for them again
        # Dims that had an error of their own; those of the next question of the key are others, if a call of
        # the next step has others.
        self._passed_over: dict[Key, set[tuple[int, ...]]] = {}
        self._retried_at = 0.0

    def call(
        self,
        inputs: Mapping[str, str],
        outputs: Mapping[str, str],
        numbers: Mapping[str, float] | None = None,
        *,
        flags: tuple[int, ...] = (),
        constants: tuple[Any, ...] = (),
        returned: int = 1,
        takes: Callable[..., bool] | None = None,
    ) -> Call:
        """The call of its variants with these flags: see Call."""
        call = Call(self, inputs, outputs, numbers or {}, flags, constants, returned, takes)
        self._variants.calls[flags] = call
        return call

    def after_fork(self) -> None:
        """In the child, which has no CUDA context."""
        self._start_over()
        self._variants.replace({})

    # ---- Asking ----

    def knows(self, key: Key) -> bool:
        """Whether variants of the key are loaded, and torch's function is called for none of them."""
        return self._variants.never_yields(key)

    def available(self, key: Key, dims: tuple[int, ...]) -> bool:
        """Whether there is a kernel for it now; with settings.raises it raises why there is none."""
        found = self._variants.covering(key, dims)
        if found is None:
            found = self._find(key, dims)  # perhaps for other dims, of which another call has asked
        if found is not None and found.extents(dims) is not None and not found.yields:
            return True
        self.fallbacks += 1
        return False

    def ask_ahead(self, key: Key, dims: tuple[int, ...]) -> None:
        """Asks for a kernel that will be needed, without waiting."""
        if current.collection is not None:
            current.collection.add(self, key, dims)
            return
        if settings.raises or IS_OFF or is_capturing():
            return
        if key in self._variants.by_key or key in self._lookups:
            return
        if dims not in self._passed_over.get(key, ()):
            self._submit(key, dims)

    # ---- Finding a variant ----

    # For a key and dims that no loaded variant covers.
    def _find(self, key: Key, dims: tuple[int, ...]) -> Loaded | None:
        if IS_OFF:
            return None
        if current.collection is not None:
            current.collection.add(self, key, dims)
            return None
        if settings.raises:
            return self._find_now(key, dims)
        entry = self._lookups.get(key)
        if entry is None and not self._may_ask(key, dims):
            return None
        lookup = entry[0] if entry is not None else self._submit(key, dims)
        asker.wait_briefly(lookup)
        is_late = _recomputation.is_possible() and entry is not None  # an earlier call was torch's
        if lookup.answer is not None:
            return None if is_late or is_capturing() else self._take(key)
        with self._lock:
            if lookup.answer is None and key not in self._variants.by_key:  # else a call has to look again
                self._variants.tell(key, ())
        return None

    # Of sizes that grow, as in a generation of which nothing is tuned, each would be a question of its own.
    def _may_ask(self, key: Key, dims: tuple[int, ...]) -> bool:
        if is_capturing() or dims in self._passed_over.get(key, ()):
            return False
        known = self._variants.by_key.get(key, ())
        return len(known) < _MAX_ALONE or sum(not one.is_of_bucket for one in known) < _MAX_ALONE

    def _find_now(self, key: Key, dims: tuple[int, ...]) -> Loaded:
        if is_capturing():
            raise FailedPreconditionError(
                "the kernel is not loaded, and nothing can be loaded while a CUDA graph is captured: run the "
                "same call once before the capture",
                self.name,
            )
        with on_device(key[1]):
            return self._load(key, dims, self._ask(key, dims))

    def _submit(self, key: Key, dims: tuple[int, ...]) -> Lookup:
        with self._lock:
            entry = self._lookups.get(key)
            if entry is not None:
                return entry[0]
            lookup = Lookup(lambda: self._ask(key, dims), lambda done: self._settled(key, done))
            lookup.has_waiter = key in self._reopened
            self._lookups[key] = lookup, dims
        asker.submit(lookup)
        return lookup

    def problem(self, key: Key, dims: tuple[int, ...]) -> Problem:
        """The kernel's problem, as the daemon is asked."""
        dtype, _, flags, _ = key
        return {**dict(zip(self.dims, dims)), "T": TYPES[dtype], **dict(zip(self.flags, flags))}

    def need_of(self, problem: Problem, device: int) -> Need | None:
        """The inverse on a GPU; None for a problem that the operator does not have."""
        dtype = next((one for one, name in TYPES.items() if name == problem.get("T")), None)
        others = {name: value for name, value in problem.items() if name != "T"}
        dims, flags, known = (
            tuple(int(others.get(name, 0)) for name in names) for names in (self.dims, self.flags, self.known)
        )
        # A flag that the operator does not have is 0 wherever it asks.
        has_more = any(others[name] for name in others.keys() - {*self.dims, *self.flags})
        if dtype is None or has_more or flags not in self._variants.calls:
            return None
        return Need(self, (dtype, device, flags, known), dims)

    def call_of(self, key: Key) -> Call:
        """The call with the flags of the key."""
        return self._variants.calls[key[2]]

    def variant(self, key: Key, dims: tuple[int, ...], found: Found) -> Loaded:
        """The answer as a variant, which is not used yet."""
        return Loaded(load(found.held.answer, key[1]), self.call_of(key).names, found, dims)

    def _ask(self, key: Key, dims: tuple[int, ...]) -> Found:
        with settings.asked() as client:
            self.asked += 1
            try:
                return Found(client, client.ask(self.name, self.problem(key, dims), Question(), gpu=key[1]))
            except DataLossError as error:
                cause = f"the daemon's answer is wrong ({error}): start one of this version, {_core.version}"
                raise DataLossError(cause, client.address) from None

    # On the background thread. The next call loads the variant: it has the CUDA context, and it knows whether
    # a graph is captured.
    def _settled(self, key: Key, lookup: Lookup) -> None:
        if lookup.error is not None:
            about = f"{self.name} {lookup.error.code}"
            warn(f"{self.name}: torch's own operator is used: {lookup.error}", about)
            return
        with self._lock:
            if key not in self._variants.by_key:
                self._variants.untell(key)

    # The answered lookup of the key, loaded. None if another thread has taken it, or if it cannot be loaded.
    def _take(self, key: Key) -> Loaded | None:
        with self._lock:
            entry = self._lookups.pop(key, None)
        if entry is None:
            return None
        lookup, dims = entry
        try:
            with on_device(key[1]):
                return self._load(key, dims, lookup.answer)
        except CubindError as error:
            lookup.answer, lookup.error = None, error
            with self._lock:
                self._lookups[key] = entry
            self._settled(key, lookup)
            return None

    def _load(self, key: Key, dims: tuple[int, ...], found: Found) -> Loaded:
        loaded = self.variant(key, dims, found)
        with self._lock:
            others = (one for one in self._variants.by_key.get(key, ()) if one.dims != dims)
            self._variants.put(key, (loaded, *others)[:_MAX_VARIANTS])
        return loaded

    # ---- Tuning ----

    @contextlib.contextmanager
    def without_kernels(self) -> Iterator[None]:
        """Meanwhile every call looks for its kernel again."""
        with self._lock:
            known = self._variants.replace({})
        try:
            yield
        finally:
            with self._lock:
                self._variants.replace(known)

    @contextlib.contextmanager
    def only(self, key: Key, *variants: Loaded) -> Iterator[None]:
        """Meanwhile the key has no other variants than these."""
        with self._lock:
            known = self._variants.by_key.get(key)
            self._variants.put(key, variants)
        try:
            yield
        finally:
            with self._lock:
                if known is None:
                    self._variants.drop(key)
                else:
                    self._variants.put(key, known)

    def retell(self) -> None:
        """Whether torch's functions are called where they are faster has changed."""
        with self._lock:
            self._variants.tell_all()

    def tuned(self, needs: Iterable[tuple[Key, tuple[int, ...]]]) -> None:
        """Asks for these kernels and for those in use, whose answers may have changed."""
        if settings.raises:
            with self._lock:
                self._variants.by_key = {}
            self.forget_missing()
            return
        with self._lock:
            used = [(key, one.dims) for key, one in self._variants.each()]
        self._renewals.start(used, self._ask, again=True)
        for key, dims in needs:
            if key not in self._variants.by_key:
                self._submit(key, dims)

    # ---- Between two steps ----

    def step(self) -> None:
        """Takes over what has been answered since, and asks again for what may have changed."""
        if settings.is_sealed:  # it keeps what it has
            return
        if settings.strict:
            self._forget_the_rest()
            return
        if not (self._variants.by_key or self._lookups or self._renewals or self._passed_over):
            return
        now = time.monotonic()
        retries = now - self._retried_at >= _RETRY_AFTER
        self.renew(retries)
        if not is_capturing():
            self.load_answers()
        self._end_passing_over()
        if retries:
            self._retried_at = now
            self._reopen()

    # All ranks of a job ask again at the same call.
    def _forget_the_rest(self) -> None:
        with self._lock:
            known = self._variants.by_key.items()
            self._variants.by_key = {key: all_ for key, all_ in known if all(one.is_current for one in all_)}
        self.forget_missing()

    def forget_missing(self) -> None:
        """A call looks again for what was missing."""
        with self._lock:
            for lookup, _ in self._lookups.values():
                asker.drop(lookup)
            self._lookups.clear()
            self._renewals.drop()
            self._passed_over.clear()
            self._variants.clear_calls()
            self._variants.tell_all()

    def renew(self, retries: bool = True) -> None:
        """Takes over the answers for variants in use, and asks again for those that may have changed; only
        with retries for those whose last question had an error of its own."""
        self._take_renewals(retries)
        with self._lock:
            changed = [(key, one.dims) for key, one in self._variants.each() if not one.is_current]
        self._renewals.start(changed, self._ask)

    def _take_renewals(self, retries: bool = False) -> None:
        if self._renewals and not is_capturing():
            self._renewals.take(self._load, retries)

    # A call of the next step asks again for what had an error of its own, with other dims if there are such
    # calls, and does not wait.
    def _reopen(self) -> None:
        for key, dims in self._take_failed().items():
            self._reopened.add(key)
            with self._lock:
                passed_over = self._passed_over.setdefault(key, set())
                if len(passed_over) >= _MAX_VARIANTS:
                    passed_over.clear()
                passed_over.add(dims)
                if key not in self._variants.by_key:
                    self._variants.untell(key)

    # No call of the step that has ended had other dims.
    def _end_passing_over(self) -> None:
        with self._lock:
            for key in self._passed_over.keys() - self._lookups.keys():
                del self._passed_over[key]

    def retry(self) -> None:
        """Asks again for what had an error of its own."""
        for key, dims in self._take_failed().items():
            self._submit(key, dims)

    def _take_failed(self) -> dict[Key, tuple[int, ...]]:
        with self._lock:
            failed = {key: dims for key, (lookup, dims) in self._lookups.items() if lookup.error is not None}
            for key in failed:
                del self._lookups[key]
        return failed

    def take_all(self) -> bool:
        """Loads what has been answered. Whether there is a kernel for everything that was asked for."""
        self._take_renewals()
        self.load_answers()
        return not self._lookups

    def load_answers(self) -> None:
        """Loads what has been answered of what was missing."""
        for key, (lookup, _) in list(self._lookups.items()):
            if lookup.answer is not None:
                self._take(key)

    # ---- What has been done ----

    def counts(self) -> tuple[int, int]:
        """(launches, calls that torch's own function took)."""
        counts = [call.native.counts() for call in self._variants.calls.values()]
        return sum(c[0] for c in counts), self.fallbacks + sum(c[1] for c in counts)

    def yielding(self) -> list[str]:
        """The problems for which torch's function is called since it is faster."""
        return [
            f"{self.name} {_wire.listed(self.problem(key, one.dims))}: {one.comparison}"
            for key, one in self._variants.each()
            if one.yields
        ]

    def why(self) -> str:
        """Why a kernel is missing; "" if none is."""
        for lookup, _ in list(self._lookups.values()):
            if lookup.error is not None:
                return str(lookup.error)
        if not self._lookups:
            return ""
        return str(asker.failure) if asker.failure is not None else "the daemon has not answered yet"


_operators: weakref.WeakSet[Operator] = weakref.WeakSet()


def operators() -> list[Operator]:
    return list(_operators)


@contextlib.contextmanager
def collecting(backward: bool) -> Iterator[Collection]:
    """Meanwhile no operator has a kernel, and what calls need is collected."""
    if current.collection is not None:
        raise FailedPreconditionError("another call is under way", "cubind.torch.tune()")
    current.collection = collection = Collection(backward)
    try:
        with contextlib.ExitStack() as stack:
            for operator in operators():
                stack.enter_context(operator.without_kernels())
            yield collection
    finally:
        current.collection = None
