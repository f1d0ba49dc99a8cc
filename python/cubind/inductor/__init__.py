"""Inductor's choices among its templates for matrix products, measured by one process for all.

import cubind.inductor
cubind.inductor.install()

or python -m cubind.inductor SCRIPT ARGS
"""

from __future__ import annotations

from ._install import install, report, uninstall, verify_ranks

__all__ = ["install", "report", "uninstall", "verify_ranks"]
