"""Why a kernel, or a call, stays Triton's own."""

from __future__ import annotations


class StaysOwnError(Exception):
    """The reason: the end of a sentence that begins with the kernel's name."""
