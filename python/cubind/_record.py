"""CUBIND_RECORD=shapes.jsonl: the problems that a run asked the daemon for, as lists for `cubindctl tune
--shapes`."""

from __future__ import annotations

import fcntl
import json
import pathlib
import warnings

from . import _fork
from ._wire import Problem


class Recorder:
    """Appends each problem once to the list of its kernel: shapes.jsonl becomes shapes.KERNEL.jsonl, since a
    list is for one kernel. Several processes may write the same list. Safe on many threads."""

    def __init__(self, path: str) -> None:
        self._path = pathlib.Path(path)
        self._seen: set[str] = set()
        self._lock = _fork.Lock()

    def record(self, kernel: str, problem: Problem) -> None:
        """Adds a line unless the list has it. A list that cannot be written is warned of."""
        line = json.dumps({"kernel": kernel, **problem})
        with self._lock:
            if line in self._seen:
                return
            self._seen.add(line)
            suffix = self._path.suffix or ".jsonl"
            try:
                self._append(self._path.with_name(f"{self._path.stem}.{kernel}{suffix}"), line)
            except OSError as error:
                warnings.warn(
                    f"CUBIND_RECORD: a problem is not recorded: {error}", RuntimeWarning, stacklevel=2
                )

    @staticmethod
    def _append(path: pathlib.Path, line: str) -> None:
        with path.open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            if line not in file.read().splitlines():
                file.write(line + "\n")
