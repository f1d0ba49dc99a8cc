"""Triton's autotuned kernels, chosen by a daemon for all processes, without an edit of the program.

import cubind.triton
cubind.triton.install()

or python -m cubind.triton SCRIPT ARGS
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import SealedError
from ._install import install, report, seal, uninstall, verify_ranks
from .definition import Definition
from .table import Table

__all__ = [
    "Definition",
    "SealedError",
    "Table",
    "bind",
    "install",
    "report",
    "seal",
    "uninstall",
    "verify_ranks",
]


def bind(kernel: Any, grid: Any, /, **fixed: Any) -> Callable[..., None]:
    """A function that launches as kernel[grid] does, with less work for each launch.

    add = cubind.triton.bind(add_kernel, lambda values: (triton.cdiv(values["N"], values["BLOCK"]),))
    add(x, y, out, N)

    The first call with other types, divisibilities by 16, constants or values of the autotuner's key is
    Triton's own launch: it compiles, and asks the daemon where install() was called. The next ones launch the
    same binary. While a daemon tunes, every call is Triton's own.

    kernel: of @triton.jit, with @triton.autotune around it or alone. grid: sizes, or a function that gives
    them. fixed: arguments and options that all calls share: BLOCK=128, num_warps=4.

    Triton's check that no global variable of the kernel has changed is made at the first calls alone. Raises
    InvalidArgumentError for a kernel with other decorators, any number of arguments, or configurations with a
    pre_hook.
    """
    from ._bound import Bound

    return Bound(kernel, grid, fixed)
