"""Loaded variants, and what they are asked for by."""

from __future__ import annotations

import dataclasses
import time
from typing import Any, NamedTuple

import torch

from .. import _core, _ranks, _sealing
from .._connected import Connected
from .._repeats import NOTHING, order_of
from ..answer import Answer
from ..client import Client
from ..comparison import Comparison
from ..errors import InvalidArgumentError
from ..question import Held

TYPES = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32"}


# What variants are found by: type, device, values of the flags, and of the dims that tell
# variants apart.
Key = tuple[torch.dtype, int, tuple[int, ...], tuple[int, ...]]


class Need(NamedTuple):
    """A kernel that a call needs. operator: that of _operator."""

    operator: Any
    key: Key
    dims: tuple[int, ...]


class Collection:
    """The kernels that a run needs, collected while torch's own functions take their place. needs: in the
    order of the calls. backward: also those of a backward pass, which is not run."""

    def __init__(self, backward: bool) -> None:
        self.backward = backward
        self.needs: dict[Need, None] = {}

    def add(self, operator: Any, key: Key, dims: tuple[int, ...]) -> None:
        self.needs[Need(operator, key, dims)] = None


class Current:
    """collection: of the run that is under way; None: there is none."""

    collection: Collection | None = None


current = Current()

OF_BUCKET = {"exact", "bucket", "stale"}  # departures of an answer from the records of its bucket
LIBRARY = f"torch {torch.__version__}"  # of comparisons: those with another build say nothing


class Settings(Connected):
    """strict: a kernel that is missing raises CubindError, and calls wait for the daemon's answer; otherwise
    torch's own function takes its place. never_slower: torch's function is called where it is known to be
    faster. client: who is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.never_slower = True
        self.strict = _ranks.are_several()

    @property
    def raises(self) -> bool:
        """Whether a missing kernel raises: in a strict or a sealed program."""
        return self.strict or self.is_sealed

    @property
    def is_sealed(self) -> bool:
        """Whether the program is sealed by cubind.seal("error")."""
        return _sealing.program.mode == "error"


settings = Settings()


@dataclasses.dataclass(frozen=True)
class Found:
    """An answer and who gave it."""

    client: Client
    held: Held


def comparison_with_torch(answer: Answer) -> Comparison | None:
    """The answer's comparison with this very build of torch."""
    return next((one for one in answer.over_library if one.library == LIBRARY), None)


class Loaded:
    """A loaded variant. names: of a call's values. found: the answer, and dims those that it was asked for.
    comparison: with this torch; None: there is none."""

    def __init__(
        self, kernel: _core.Kernel, names: tuple[str, ...], found: Found, dims: tuple[int, ...]
    ) -> None:
        self.kernel = kernel
        self.found = found
        self.dims = dims
        self.comparison = comparison_with_torch(found.held.answer)
        self.extents = kernel.extents
        self.order = order_of(kernel.parameters(), names)
        for source, extent, (name, *_) in zip(self.order, kernel.extents(dims) or (), kernel.parameters()):
            if source == NOTHING and extent > 0:
                raise InvalidArgumentError(
                    f"the operator has no such argument (it has {', '.join(names)})", name
                )

    @property
    def yields(self) -> bool:
        """Whether torch's function is called for the problems that it covers."""
        return settings.never_slower and self.comparison is not None and self.comparison.is_slower

    @property
    def is_of_bucket(self) -> bool:
        """Whether it holds for all problems of its bucket that were not measured by themselves."""
        return OF_BUCKET.issuperset(self.found.held.answer.match.split("+"))

    @property
    def is_current(self) -> bool:
        """Whether the client would give the same answer again."""
        return self.found.client is settings.client and self.found.held.until > time.monotonic()
