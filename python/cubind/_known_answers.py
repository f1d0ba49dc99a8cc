"""Answers that a client has had, which cover further questions by their rules."""

from __future__ import annotations

import time
from typing import Any

from . import _fork, _wire
from .answer import Answer
from .question import Held

_MAX_HELD = 64  # answers to questions that differ in their dims alone, the newest first
_MAX_QUESTIONS = 4096


class KnownAnswers:
    """By key: a tuple that begins with the kernel. Safe on many threads and across fork()."""

    def __init__(self) -> None:
        self._answers: dict[Any, tuple[Held, ...]] = {}
        self._lock = _fork.Lock()

    def of(self, key: Any) -> tuple[Held, ...]:
        """The newest first."""
        return self._answers.get(key, ())

    def find(self, key: Any, problem: _wire.Problem) -> Held | None:
        """One that covers the problem."""
        for held in self.of(key):
            if held.until > time.monotonic() and (answer := _answer_for(held.answer, problem)) is not None:
                return Held(answer, held.until)
        return None

    def add(self, key: Any, held: Held) -> None:
        """Replaces what was known of the same problem."""
        now = time.monotonic()
        with self._lock:
            others = [h for h in self.of(key) if h.until > now and h.answer.problem != held.answer.problem]
            if len(self._answers) >= _MAX_QUESTIONS and key not in self._answers:
                self._answers.pop(next(iter(self._answers)))
            self._answers[key] = (held, *others)[:_MAX_HELD]

    def drop(self, kernels: set[str]) -> None:
        """What was answered before for these kernels may be worse now."""
        with self._lock:
            self._answers = {key: held for key, held in self._answers.items() if key[0] not in kernels}


# The answer to `problem` by another answer's rule; None where it does not cover it.
def _answer_for(answer: Answer, problem: _wire.Problem) -> Answer | None:
    values = {name: value for name, value in problem.items() if isinstance(value, int)}
    dims = {name: values.pop(name) for name in answer.dim_names if name in values}
    flags_agree = all(answer.problem.get(name) == value for name, value in values.items())
    if not flags_agree or len(dims) != len(answer.dim_names):
        return None
    return (
        answer
        if all(answer.problem[name] == value for name, value in dims.items())
        else answer.for_dims(**dims)
    )
