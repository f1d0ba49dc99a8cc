"""What a choice depends on, as it is stored."""

from __future__ import annotations

import dataclasses
import hashlib
import re

from ..errors import FailedPreconditionError

_ADDRESS = re.compile(r"\bat 0x[0-9a-f]+")


def digest(text: str) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class Question:
    """digest: of all that the choice depends on, the candidates included. candidates: the digest of each, in
    Inductor's order; none: a kernel's configuration is asked for. what: for a reader. toolchain: PyTorch,
    CUDA and Triton. device: CUDA's number of the GPU."""

    digest: str
    candidates: tuple[str, ...]
    what: str
    toolchain: str
    device: int

    @property
    def name(self) -> str:
        """The kernel's, in tables."""
        return f"inductor_{self.digest}"


@dataclasses.dataclass(frozen=True)
class Choice:
    """number: of the question's candidate. time_ms: what Inductor has measured. values: what else those need
    who follow, or the configuration, as _private reads it. among: the digest of a kernel's configurations."""

    number: int
    time_ms: float
    values: dict[str, int] = dataclasses.field(default_factory=dict)
    among: str = ""

    def told(self) -> str:
        return str(self.values) if self.among else f"candidate {self.number}"


def make_question(text: str, candidates: list[str], what: str, toolchain: str, device: int) -> Question:
    """text: of all that the choice depends on. Raises FailedPreconditionError where only this process could
    ask it."""
    if found := _ADDRESS.search(text):
        around = text[max(0, found.start() - 64) : found.end()]
        raise FailedPreconditionError(f"depends on an object of this process: {around}", what)
    return Question(digest(text), tuple(map(digest, candidates)), what, toolchain, device)
