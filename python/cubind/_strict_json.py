"""JSON that others wrote: what it means is what it says."""

from __future__ import annotations

import json
import math
from typing import Any


def loads(text: str | bytes, *, infinity: bool = False) -> Any:
    """The value. Raises ValueError for what is not JSON, a name that an object has twice, NaN, and a number
    that is not finite. infinity: the word Infinity is taken, which Python writes."""

    def constant(name: str) -> float:
        if infinity and name == "Infinity":
            return math.inf
        raise ValueError(f"{name} is no number of JSON")

    try:
        return json.loads(
            text, object_pairs_hook=_without_duplicates, parse_constant=constant, parse_float=_finite
        )
    except RecursionError:
        raise ValueError("nested too deep") from None


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits} is above the largest number")
    return value


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} is given twice")
    return found
