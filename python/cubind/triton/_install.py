"""Putting the patch in and out, and the report of what it did."""

from __future__ import annotations

import collections
import os
import threading
from typing import TYPE_CHECKING, Any

from .. import _limits, _ranks_agree, _switch
from .._asking import PATIENCE
from .._connection import import_grpc
from .._text import printable
from ..errors import FailedPreconditionError, InvalidArgumentError
from . import _contents, _reports
from ._sealing import TritonSeal
from .worker.toolchain import ToolchainError, check_version

if TYPE_CHECKING:
    from ..client import Client
    from ._artifacts import Artifacts
    from ._daemon import CubindDaemon
    from ._launching import Launching
    from ._patch import Patch
    from ._triton_cache import Cache


class _Installed:
    """All but the lock is guarded by it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.patch: Patch | None = None
        self.artifacts: Artifacts | None = None
        self.cache: Cache | None = None
        self.launching: Launching | None = None
        self.seal: TritonSeal | None = None


_installed = _Installed()


def install(
    client: Client | None = None,
    *,
    on_miss: str = "wait",
    timeout: float = 60.0,
    record: str | os.PathLike[str] | None = None,
) -> None:
    """Have Triton's autotuner ask the daemon instead of measuring in this process, and Triton's cache ask it
    for compiled kernels instead of compiling them. Launches need no C compiler then.

    It may come before or after the kernels' modules are imported. Kernels that only this process can tune
    stay Triton's own: a RuntimeWarning names each once, and report() counts them. So do all while the daemon
    does not answer. With CUBIND=0 in the environment nothing is installed. A second call replaces the first.

    client: as cubind.connect() makes one; None: cubind.connect(), in the background.
    on_miss: with "wait" a call waits until the daemon has tuned the kernel, as it waits for Triton's own
        autotuner, and all ranks of a job run the same configuration; the default. "serve" runs Triton's first
        configuration until then: nothing is measured meanwhile on a GPU that this process uses.
    timeout: seconds that a call waits at most, with "wait", for a tuning or for a daemon to answer.
    record: a file to which the kernels that are asked for are added, for python -m cubind.triton bake.

    Raises FailedPreconditionError if there is no Triton, or one of a version that is not known;
    InvalidArgumentError and TypeError for an argument, CUBIND_TRITON_SEALED or CUBIND_TRITON_CONTENTS that
    cannot be; OSError for a record that cannot be written.
    """
    if on_miss not in ("serve", "wait"):
        raise InvalidArgumentError(f'"{on_miss}" is neither serve nor wait', "on_miss")
    timeout = _limits.seconds(timeout)
    _contents.may_go_to("")
    if _switch.IS_OFF:
        return
    try:
        import triton

        check_version(triton.__version__)
    except (ImportError, ToolchainError) as error:
        raise FailedPreconditionError(f"{error}: Triton tunes its kernels itself", "cubind.triton") from None
    from ._artifacts import Artifacts
    from ._daemon import CubindDaemon
    from ._recording import Recorder

    import_grpc()  # by the background thread, a call would wait for longer than 50 ms
    waits = on_miss == "wait"
    add = None if record is None else Recorder(record).add
    daemon = CubindDaemon(client, waits, timeout, record=add)
    artifacts = Artifacts(daemon.connected, timeout if waits else PATIENCE, add)
    put_in(daemon, artifacts)
    artifacts.connect()


def put_in(daemon: CubindDaemon, artifacts: Artifacts | None = None) -> None:
    """artifacts: where compiled kernels come from; None: Triton compiles all."""
    from . import _triton_private as private
    from ._patch import Patch
    from ._triton_cache import Cache

    seal = TritonSeal()
    seal.open()
    uninstall()
    with _installed.lock:
        _installed.seal = seal
        _installed.patch = Patch(daemon, seal, lambda: _reports.changed(report))
        _installed.patch.install()
        if private.COMPILES_LAUNCHERS:
            from ._launching import Launching

            _installed.launching = Launching()
            _installed.launching.install()
        if artifacts is not None:
            _installed.artifacts = artifacts
            _installed.cache = Cache(
                artifacts.find, lambda kernel, key, own: seal.refuse_own("compile", kernel, key[:12], own)
            )
            artifacts.changed = _installed.patch.changed
            _installed.cache.install()


def is_installed() -> bool:
    with _installed.lock:
        return _installed.patch is not None


def uninstall() -> None:
    """Leave everything to Triton again, and forget what the daemon chose."""
    with _installed.lock:
        for each in (_installed.patch, _installed.cache, _installed.launching):
            if each is not None:
                each.uninstall()
        if _installed.artifacts is not None:
            _installed.artifacts.close()
        _installed.patch = _installed.artifacts = _installed.cache = None
        _installed.launching = _installed.seal = None


def seal(mode: str = "error") -> None:
    """From now on, do not let Triton silently compile or tune a kernel in this process. The variable
    CUBIND_TRITON_SEALED=warn or error does so from install() on. Kernels that the daemon has compiled and
    tuned still run.

    mode: "error" raises SealedError where Triton would compile or tune, "warn" gives a RuntimeWarning once
        for each kernel and key.

    Does nothing without install(). Raises InvalidArgumentError for an unknown mode.
    """
    with _installed.lock:
        if _installed.seal is not None:
            _installed.seal.close(mode)


def verify_ranks(group: Any = None) -> int:
    """Compare the configurations that the ranks of a job run for their autotuned kernels. It is collective:
    every rank of the group calls it. A kernel and key that only one rank has called is not compared.

    group: of torch.distributed; None: all ranks.

    Returns how many kernels and keys were compared. Raises FailedPreconditionError, on every rank, with the
    list of those that differ, or if torch.distributed is not initialized.
    """
    with _installed.lock:
        patch = _installed.patch
    remedy = 'With cubind.triton.install(on_miss="wait") all ranks of a job get those of one daemon.'
    choices = patch.choices() if patch is not None else []
    return _ranks_agree.verify(choices, group, "cubind.triton.verify_ranks", remedy)


def report() -> str:
    """Describe what became of the autotuned kernels, one line per function and reason, and of what Triton
    would have compiled.

    With CUBIND_REPORT=1 in the environment the first process of a program prints it on stderr at its end,
    with those of the processes that it has started.
    """
    if _switch.IS_OFF:
        return f"cubind.triton: {_switch.WHY_OFF}"
    with _installed.lock:
        counts = _installed.patch.counts() if _installed.patch is not None else {}
        artifacts = _installed.artifacts
        launchers = collections.Counter(_installed.launching.own if _installed.launching is not None else ())
    lines = []
    for name, count in sorted(counts.items()):
        if count.asked:
            lines.append(
                f"cubind.triton: {name}: asked {count.asked}, served {count.served}, tuning {count.tuning}"
            )
        lines += [
            f"cubind.triton: {name}: cannot be launched here: {configuration}: {why}"
            for configuration, why in count.refused.items()
        ]
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
    lines += [
        f"cubind.triton: {times} launchers were compiled by Triton: each kernel {reason}"
        for reason, times in sorted(launchers.items())
    ]
    return printable("\n".join(lines)) or "cubind.triton: no autotuned kernel was asked for"


_reports.begin(report)
