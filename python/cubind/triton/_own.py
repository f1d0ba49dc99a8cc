"""Why a kernel, or a call, stays Triton's own."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Own:
    """reason: the end of a sentence that begins with the kernel's name. is_said: a warning has been given,
    which named no kernel."""

    reason: str
    is_said: bool = False


@dataclasses.dataclass
class Known:
    """What came with a choice. refused: of configurations that cannot be launched here, why. times_ms: the
    median of the choice, and the ends of its interval, in Triton's unit."""

    refused: dict[int, str] = dataclasses.field(default_factory=dict)
    times_ms: list[float] = dataclasses.field(default_factory=list)


class StaysOwnError(Exception):
    """The same where it is found."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.own = Own(" ".join(reason.split()))  # Triton's own errors have several lines
