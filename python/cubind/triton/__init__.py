"""Triton's autotuned kernels, chosen by a daemon for all processes, without an edit of the program.

import cubind.triton
cubind.triton.install()

or python -m cubind.triton SCRIPT ARGS
"""

from __future__ import annotations

from ._install import install, report, seal, uninstall, verify_ranks
from ._sealing import SealedError
from .definition import Definition

__all__ = ["Definition", "SealedError", "install", "report", "seal", "uninstall", "verify_ranks"]
