"""After a program's warm-up nothing is compiled or tuned in it: what would be is named, or refused."""

from __future__ import annotations

import os

from .._asking import warn
from ..errors import FailedPreconditionError, InvalidArgumentError
from ._own import Own

VARIABLE = "CUBIND_TRITON_SEALED"
_MODES = ("warn", "error")
_REMEDY = (
    "call the kernel with these arguments before seal(), or have a daemon compile it before the program starts: "
    "python -m cubind.triton record, then bake"
)


class SealedError(FailedPreconditionError):
    """A sealed program would have compiled or tuned a kernel. field: the kernel and its key."""


class Seal:
    """mode: "" while the program is open, "warn" or "error" afterwards."""

    def __init__(self) -> None:
        self.mode = ""

    def open(self) -> None:
        """As at the start of a program: the environment decides."""
        if mode := os.environ.get(VARIABLE, ""):
            self.close(mode, VARIABLE)

    def close(self, mode: str, field: str = "mode") -> None:
        """Seal in that mode. Raises InvalidArgumentError for one that does not exist."""
        if mode not in _MODES:
            raise InvalidArgumentError(f'"{mode}" is neither warn nor error', field)
        self.mode = mode

    def refuse(self, what: str, kernel: str, key: str, own: Own) -> None:
        """Triton is about to do something ("compile", "tune") for a kernel and a key. Raises SealedError, or
        warns once for each kernel and key."""
        if not self.mode:
            return
        error = SealedError(
            f"the program is sealed, and Triton would {what} it: it {own.reason}; {_REMEDY}",
            f"{kernel} {key}",
        )
        if self.mode == "error":
            raise error
        warn(str(error), f"sealed {what} {kernel} {key}")
