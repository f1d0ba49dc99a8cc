"""The kernels that a run needs, collected while torch's own functions take their place."""

from __future__ import annotations

from typing import Any

from ._variants import Need


class Collection:
    """needs: in the order of the calls. backward: also those of a backward pass, which
    is not run."""

    def __init__(self, backward: bool) -> None:
        self.backward = backward
        self.needs: dict[Need, None] = {}

    def add(self, operator: Any, key: Any, dims: tuple[int, ...]) -> None:
        """Each once."""
        self.needs[Need(operator, key, dims)] = None


class Current:
    """collection: of the run that is under way; None: there is none."""

    collection: Collection | None = None


current = Current()
