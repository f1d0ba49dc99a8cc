"""What numbers of a caller must be, before anything is made of them."""

from __future__ import annotations

import numbers
import operator
from typing import Any

from .errors import InvalidArgumentError

_LONGEST = 366 * 24 * 3600.0


def seconds(value: Any) -> float:
    """A timeout: above 0, at most a year. Raises TypeError for what is no number, InvalidArgumentError."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"timeout: {value!r} is not a number of seconds")
    if not 0 < value <= _LONGEST:  # NaN is neither
        raise InvalidArgumentError(f"{value} is not a number of seconds above 0 and up to a year", "timeout")
    return float(value)


def count(value: Any, name: str) -> int:
    """From 0 to 2^31 - 1. TypeError for what is no integer, InvalidArgumentError for the others."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}: {value!r} is not an integer")
    if not 0 <= (number := operator.index(value)) < 2**31:
        raise InvalidArgumentError(f"{number} is not between 0 and 2^31 - 1", name)
    return number


def integer(value: Any, name: str) -> int:
    """What fits into the daemon's 64 bits; InvalidArgumentError for the others."""
    number = int(value)
    if not -(2**63) <= number < 2**63:
        raise InvalidArgumentError(f"{number} does not fit into 64 bits", name)
    return number
