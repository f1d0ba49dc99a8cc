"""What a sealed program does not leave to Triton."""

from __future__ import annotations

from .._sealing import Seal, program
from ._own import Own

_REMEDY = (
    "call the kernel with these arguments before it is sealed, or have a daemon compile it before the program "
    "starts: python -m cubind.triton record, then bake"
)


class TritonSeal(Seal):
    """Of Triton's compiles and tunings; the program's closes it too."""

    def __init__(self) -> None:
        super().__init__("CUBIND_TRITON_SEALED", program)

    def refuse_own(self, what: str, kernel: str, key: str, own: Own) -> None:
        """Triton is about to "compile" or "tune". Raises SealedError, or warns once per kernel and key."""
        subject = f"{kernel} {key}"
        self.refuse(f"Triton would {what} it: it {own.reason}; {_REMEDY}", subject, f"{what} {subject}")
