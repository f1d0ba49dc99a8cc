"""Putting the patch in and out, and the report of what it did."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import TYPE_CHECKING

from .. import _limits, _ranks, _switch
from .._connection import import_grpc
from ..errors import FailedPreconditionError, InvalidArgumentError
from .worker.toolchain import ToolchainError, check_version

if TYPE_CHECKING:
    from ..client import Client
    from ._artifacts import Artifacts
    from ._patch import Daemon, Patch
    from ._triton_cache import Cache


class _Installed:
    """All but the lock is guarded by it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.patch: Patch | None = None
        self.artifacts: Artifacts | None = None
        self.cache: Cache | None = None


_installed = _Installed()


def install(client: Client | None = None, *, on_miss: str | None = None, timeout: float = 60.0) -> None:
    """Have Triton's autotuner ask the daemon instead of measuring in this process, and Triton's cache ask it
    for compiled kernels instead of compiling them.

    It may come before or after the kernels' modules are imported. Kernels that only this process can tune
    stay Triton's own: a RuntimeWarning names each once, and report() counts them. So do all while the daemon
    does not answer. With CUBIND=0 in the environment nothing is installed. A second call replaces the first.

    client: as cubind.connect() makes one; None: cubind.connect(), in the background.
    on_miss: "serve" runs Triton's first configuration until the daemon has tuned the kernel; with "wait" a
        call waits for that. Default: "wait" in a job of several ranks (WORLD_SIZE above 1), which all run the
        same configuration then, else "serve".
    timeout: seconds that a call waits at most, with "wait".

    Raises FailedPreconditionError if there is no Triton, or one of a version that is not known;
    InvalidArgumentError and TypeError for an argument that cannot be.
    """
    if on_miss not in (None, "serve", "wait"):
        raise InvalidArgumentError(f'"{on_miss}" is neither serve nor wait', "on_miss")
    timeout = _limits.seconds(timeout)
    if _switch.IS_OFF:
        return
    try:
        import triton

        check_version(triton.__version__)
    except (ImportError, ToolchainError) as error:
        raise FailedPreconditionError(f"{error}: Triton tunes its kernels itself", "cubind.triton") from None
    from ._artifacts import Artifacts
    from ._daemon import CubindDaemon

    import_grpc()  # by the background thread, a call would wait for longer than 50 ms
    waits = on_miss == "wait" or (on_miss is None and _ranks.are_several())
    daemon = CubindDaemon(client, waits, timeout)
    artifacts = Artifacts(daemon.connected)
    put_in(daemon, artifacts)
    artifacts.connect()


def put_in(daemon: Daemon, artifacts: Artifacts | None = None) -> None:
    """The same with any daemon. artifacts: where compiled kernels come from; None: Triton compiles all."""
    from ._patch import Patch
    from ._triton_cache import Cache

    uninstall()
    with _installed.lock:
        _installed.patch = Patch(daemon)
        _installed.patch.install()
        if artifacts is not None:
            _installed.artifacts = artifacts
            _installed.cache = Cache(artifacts.find)
            _installed.cache.install()


def uninstall() -> None:
    """Leave everything to Triton again, and forget what the daemon chose."""
    with _installed.lock:
        if _installed.patch is not None:
            _installed.patch.uninstall()
        if _installed.cache is not None:
            _installed.cache.uninstall()
        if _installed.artifacts is not None:
            _installed.artifacts.close()
        _installed.patch = _installed.artifacts = _installed.cache = None


def report() -> str:
    """Describe what became of the autotuned kernels, one line per function and reason, and of what Triton
    would have compiled.

    With CUBIND_REPORT=1 in the environment it is printed on stderr at the end of the process.
    """
    if _switch.IS_OFF:
        return f"cubind.triton: {_switch.WHY_OFF}"
    with _installed.lock:
        counts = _installed.patch.counts() if _installed.patch is not None else {}
        artifacts = _installed.artifacts
    lines = []
    for name, count in sorted(counts.items()):
        if count.asked:
            lines.append(
                f"cubind.triton: {name}: asked {count.asked}, served {count.served}, tuning {count.tuning}"
            )
        lines += [
            f"cubind.triton: {name}: {times} times Triton's own: it {reason}"
            for reason, times in sorted(count.own.items())
        ]
    if artifacts is not None and artifacts.served:
        lines.append(f"cubind.triton: {artifacts.served} kernels were served instead of compiled")
    if artifacts is not None:
        lines += [
            f"cubind.triton: {times} kernels were compiled here: each {reason}"
            for reason, times in sorted(artifacts.missed.items())
        ]
    return "\n".join(lines) or "cubind.triton: no autotuned kernel was asked for"


def _print() -> None:
    print(report(), file=sys.stderr)


if os.environ.get("CUBIND_REPORT") == "1":
    atexit.register(_print)
