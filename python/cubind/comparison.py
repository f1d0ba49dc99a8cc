"""A variant compared with a library's function; a client has measured both in its process."""

from __future__ import annotations

import dataclasses
from typing import Any

# Below this a difference is not worth another function: the events that time both resolve half a microsecond.
_MARGIN = 0.01


@dataclasses.dataclass(frozen=True)
class Comparison:
    """library: "torch 2.13.0+cu130". gain, gain_low, gain_high: the library's time divided by the variant's,
    and its 95 % interval. samples: rounds with one sample of each."""

    library: str
    gain: float
    gain_low: float
    gain_high: float
    samples: int

    @property
    def is_slower(self) -> bool:
        """Whether the library is faster than the variant, by the whole interval and by more than 1 %."""
        return self.gain_high < 1 / (1 + _MARGIN)

    def __str__(self) -> str:
        if self.is_slower:
            return f"{self.library} is {1 / self.gain:.2f} x faster here: its function is called"
        return f"{self.gain:.2f} x ({self.gain_low:.2f} to {self.gain_high:.2f}) over {self.library}"


def comparisons_of(provenance: Any) -> tuple[Comparison, ...]:
    """The comparisons of a v1.Provenance."""
    return tuple(
        Comparison(one.library, one.gain, one.gain_low, one.gain_high, one.samples)
        for one in provenance.over_library
    )
