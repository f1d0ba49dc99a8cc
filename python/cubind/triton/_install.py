"""Putting the patch in and out, and the report of what it did."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import TYPE_CHECKING

from .. import _switch
from ..errors import FailedPreconditionError
from .worker.toolchain import ToolchainError, check_version

if TYPE_CHECKING:
    from ._patch import Daemon, Patch


class _Installed:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.patch: Patch | None = None  # guarded by lock


_installed = _Installed()


def install(daemon: Daemon | None = None) -> None:
    """Have Triton's autotuner ask the daemon before it measures.

    It may come before or after the kernels' modules are imported. Kernels that only this process can tune
    stay Triton's own: a RuntimeWarning names each once, and report() counts them. Without a daemon Triton
    tunes as ever. With CUBIND=0 in the environment nothing is installed. A second call replaces the daemon.

    Raises FailedPreconditionError if there is no Triton, or one of a version that is not known.
    """
    if _switch.IS_OFF:
        return
    try:
        import triton

        check_version(triton.__version__)
    except (ImportError, ToolchainError) as error:
        raise FailedPreconditionError(f"{error}: Triton tunes its kernels itself", "cubind.triton") from None
    from ._patch import Patch

    uninstall()
    with _installed.lock:
        _installed.patch = Patch(daemon)
        _installed.patch.install()


def uninstall() -> None:
    """Leave everything to Triton again, and forget what the daemon chose."""
    with _installed.lock:
        if _installed.patch is not None:
            _installed.patch.uninstall()
        _installed.patch = None


def report() -> str:
    """Describe what became of the autotuned kernels, one line per function and reason.

    With CUBIND_REPORT=1 in the environment it is printed on stderr at the end of the process.
    """
    if _switch.IS_OFF:
        return f"cubind.triton: {_switch.WHY_OFF}"
    with _installed.lock:
        counts = _installed.patch.counts() if _installed.patch is not None else {}
    lines = []
    for name, count in sorted(counts.items()):
        if count.asked:
            lines.append(f"cubind.triton: {name}: asked {count.asked}, answered {count.answered}")
        lines += [
            f"cubind.triton: {name}: {times} times Triton's own: it {reason}"
            for reason, times in sorted(count.own.items())
        ]
    return "\n".join(lines) or "cubind.triton: no autotuned kernel was asked for"


def _print() -> None:
    print(report(), file=sys.stderr)


if os.environ.get("CUBIND_REPORT") == "1":
    atexit.register(_print)
