"""Questions for variants in use, whose answers may have changed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from .._asking import Asker, Lookup, warn
from ..errors import CubindError
from ._gpu import on_device
from ._variants import Found, Key, Loaded

Wanted = tuple[Key, tuple[int, ...]]  # and the dims
Renewal = tuple[Key, tuple[int, ...], Lookup]
Ask = Callable[[Key, tuple[int, ...]], Found]
Load = Callable[[Key, tuple[int, ...], Found], Loaded]


class Renewals:
    """The questions of an operator, with its name. An answer is loaded by take() alone; a question with an
    error of its own stays until there are retries, and its variant in use: a kernel that was right is right.
    Safe on many threads."""

    def __init__(self, name: str, asker: Asker) -> None:
        self._name = name
        self._asker = asker
        self._lock = threading.Lock()
        self._under_way: list[Renewal] = []  # guarded by _lock

    def __bool__(self) -> bool:
        return bool(self._under_way)

    def start(self, wanted: Iterable[Wanted], ask: Ask, again: bool = False) -> None:
        """Asks by `ask`; with again also for what is under way, whose answers are not taken any more."""
        with self._lock:
            if again:
                self._under_way.clear()
            under_way = {(key, dims) for key, dims, _ in self._under_way}
            renewals = [_renewal(*each, ask) for each in wanted if each not in under_way]
            self._under_way += renewals
        for _, _, lookup in renewals:
            self._asker.submit(lookup)

    def drop(self) -> None:
        with self._lock:
            for _, _, lookup in self._under_way:
                self._asker.drop(lookup)
            self._under_way.clear()

    def take(self, load: Load, retries: bool = False) -> None:
        """Loads what has been answered; with retries, questions with an error are not under way any more."""
        answered, others = [], []
        with self._lock:
            for renewal in self._under_way:
                lookup = renewal[2]
                if lookup.answer is not None:
                    answered.append(renewal)
                elif lookup.error is None or not retries:
                    others.append(renewal)
            self._under_way = others
        for renewal in answered:
            self._take(renewal, load)

    def _take(self, renewal: Renewal, load: Load) -> None:
        key, dims, lookup = renewal
        try:
            with on_device(key[1]):
                load(key, dims, lookup.answer)
        except CubindError as error:
            warn(f"{self._name}: an earlier variant stays in use: {error}")
            lookup.answer, lookup.error = None, error
            with self._lock:
                self._under_way.append(renewal)


def _renewal(key: Key, dims: tuple[int, ...], ask: Ask) -> Renewal:
    return key, dims, Lookup(lambda: ask(key, dims), lambda _: None)
