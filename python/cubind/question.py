"""The options of a question, and its answer as a client holds it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .answer import Answer


@dataclasses.dataclass(frozen=True)
class Question:
    """The options of a question: device, on_miss, tune, accept, reproducible, invariant, warm_l2, graph,
    namespace, job, lend and generation, which Client.get() explains."""

    device: str | None = None
    on_miss: str = "serve"
    tune: bool = True
    accept: str | None = None
    reproducible: bool = False
    invariant: str | None = None
    warm_l2: bool = False
    graph: bool = False
    namespace: str = ""
    job: str | None = None
    lend: bool | None = None
    generation: str | None = None


@dataclasses.dataclass(frozen=True)
class Held:
    """An answer, and the time.monotonic() seconds at which it stops covering its bucket."""

    answer: Answer
    until: float
