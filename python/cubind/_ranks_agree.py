"""Whether the ranks of a job run the same configurations."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from .errors import FailedPreconditionError

_SHOWN = 20  # of the choices that differ


@dataclasses.dataclass(frozen=True)
class Choice:
    """What a kernel runs for a key. digest: of what it was compiled from; "": the daemon was not asked."""

    kernel: str
    key: str
    configuration: str
    digest: str

    def __str__(self) -> str:
        return f"{self.configuration}{f' of {self.digest[:12]}' if self.digest else ''}"


def verify(choices: Iterable[Choice], group: Any, caller: str, remedy: str) -> int:
    """Compare this rank's choices with those of the others. It is collective: all ranks of the group call
    it. Returns how many kernels and keys were compared: those of at least two ranks. Raises
    FailedPreconditionError, on every rank, with those that differ. caller: its name, for the error. remedy: a
    sentence, for it too."""
    from torch import distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        raise FailedPreconditionError(
            "is not initialized: call init_process_group() first", "torch.distributed"
        )
    gathered: list[Any] = [None] * distributed.get_world_size(group)
    distributed.all_gather_object(gathered, list(choices), group=group)
    return compare(gathered, caller, remedy)


def compare(by_rank: list[list[Choice]], caller: str, remedy: str) -> int:
    """The same for what the ranks of a group have chosen, in their order."""
    found: dict[tuple[str, str], list[tuple[int, Choice]]] = {}
    for rank, choices in enumerate(by_rank):
        for choice in choices:
            found.setdefault((choice.kernel, choice.key), []).append((rank, choice))
    common = {key: ranks for key, ranks in found.items() if len(ranks) > 1}
    differing = [
        f"{kernel} {key}: " + ", ".join(f"rank {rank} runs {choice}" for rank, choice in ranks)
        for (kernel, key), ranks in sorted(common.items())
        if _differ([choice for _, choice in ranks])
    ]
    if differing:
        more = f"\nand {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else ""
        raise FailedPreconditionError(
            f"{len(differing)} of {len(common)} choices differ between ranks. {remedy}\n"
            + "\n".join(differing[:_SHOWN])
            + more,
            caller,
        )
    return len(common)


def _differ(choices: list[Choice]) -> bool:
    configurations = {choice.configuration for choice in choices}
    digests = {choice.digest for choice in choices} - {""}
    return len(configurations) > 1 or len(digests) > 1
