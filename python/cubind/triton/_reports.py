"""CUBIND_REPORT=1: one report at the end of a program, whatever processes it has started.

The first process that imports this makes a folder, of which the others learn by their environment. Each
writes its report there whenever that has changed: a pool ends its workers by a signal.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Callable

_FOLDER = "CUBIND_TRITON_REPORTS"
_WANTED = os.environ.get("CUBIND_REPORT") == "1"


def begin(report: Callable[[], str]) -> None:
    """Has this process print the reports at its end, unless that is another one's."""
    if _WANTED and not os.environ.get(_FOLDER):
        os.environ[_FOLDER] = tempfile.mkdtemp(prefix="cubind-reports-")
        atexit.register(_print, pathlib.Path(os.environ[_FOLDER]), os.getpid(), report)


def changed(report: Callable[[], str]) -> None:
    """This process' report is another one now."""
    if not _WANTED:
        return
    path = pathlib.Path(os.environ.get(_FOLDER, ""), str(os.getpid()))
    with contextlib.suppress(OSError):  # the first process has ended
        path.with_suffix(".new").write_text(f"{_name()}\n{report()}")
        path.with_suffix(".new").replace(path)


def _name() -> str:
    rank = os.environ.get("RANK")
    named = f"rank {rank}" if rank else multiprocessing.current_process().name
    return f"cubind.triton: process {os.getpid()} ({named}):"


def _print(folder: pathlib.Path, process: int, report: Callable[[], str]) -> None:
    if os.getpid() != process:  # a forked child's exit
        return
    texts: list[str] = []
    with contextlib.suppress(OSError):  # long programs outlive folders below /tmp
        others = [path for path in folder.iterdir() if path.suffix == "" and path.name != str(process)]
        texts = [path.read_text() for path in sorted(others, key=lambda path: int(path.name))]
    own = f"{_name()}\n{report()}" if texts else report()
    print("\n".join([own, *texts]), file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
