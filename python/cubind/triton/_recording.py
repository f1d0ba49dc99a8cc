"""A file of what a program asks for: the kernels that it compiles, and those that are autotuned.

It is a gzip file of JSON lines. Each line is a member of its own, appended by one write under a lock: ranks
of a job may share the file, and a program that is killed has written all that it asked for so far.
"""

from __future__ import annotations

import dataclasses
import errno
import fcntl
import gzip
import json
import os
import pathlib
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from .. import _core, _fork
from .._asking import warn
from ..errors import InvalidArgumentError
from ._spec import Spec

FORMAT = "cubind.triton.record/1"

_BYTES = "latin-1"  # of arrays in JSON, a character each

Record = Callable[[Spec, int], None]  # called with a kernel and the GPU that it is for


@dataclasses.dataclass(frozen=True)
class Entry:
    """One kernel. device: facts and driver of the GPU that it is for, as GetVariant takes them."""

    spec: Spec
    device: dict[str, Any]


class Recorder:
    """Adds to the file at a path. Safe on many threads, and in forked children."""

    def __init__(
        self, path: str | os.PathLike[str], devices: dict[int, dict[str, Any]] | None = None
    ) -> None:
        """devices: known GPUs; None: they are asked. Raises OSError if the file cannot be written."""
        self._path = pathlib.Path(path).resolve()
        self._names: set[str] = set()
        self._devices = devices or {}
        self._lock = _fork.Lock()
        self._append(b"")

    def add(self, spec: Spec, device: int) -> None:
        """A kernel that this process asks for, on one of its GPUs, by CUDA's number. Each counts once. If it
        cannot be written, a RuntimeWarning says so once."""
        with self._lock:
            if spec.name in self._names:
                return
            if device not in self._devices:
                self._devices[device] = _core.gpu(device)
            try:
                self._append(gzip.compress(_line(Entry(spec, self._devices[device]))))
                self._names.add(spec.name)
            except OSError as error:
                warn(f"{spec.name} and perhaps others are not recorded: {error}", f"record {self._path}")

    def _append(self, data: bytes) -> None:
        """All of it or nothing: what comes behind a part could not be read."""
        opened = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX)
            size = os.fstat(opened).st_size
            if os.write(opened, data) < len(data):
                os.ftruncate(opened, size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        finally:
            os.close(opened)


def _line(entry: Entry) -> bytes:
    spec = entry.spec
    fields = {
        "format": FORMAT,
        "name": spec.name,
        "entry": spec.entry,
        "indices": spec.indices,
        "problem": spec.problem,
        "spec": spec.json.decode(),
        "files": {path: content.decode(_encoding(path)) for path, content in spec.files.items()},
        "device": entry.device,
    }
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def _encoding(path: str) -> str:
    return _BYTES if path.endswith(".npy") else "utf-8"


def read(path: str | os.PathLike[str]) -> Iterator[Entry]:
    """The kernels of a file, each once. Raises InvalidArgumentError for another kind of file, OSError."""
    names = set()
    try:
        with gzip.open(path) as lines:
            for line in lines:
                entry = _entry(json.loads(line))
                if entry.spec.name not in names:
                    names.add(entry.spec.name)
                    yield entry
    except (AttributeError, EOFError, KeyError, TypeError, ValueError, gzip.BadGzipFile, zlib.error) as error:
        raise InvalidArgumentError(
            f"is not a file of python -m cubind.triton record: {type(error).__name__}: {error}", str(path)
        ) from None


def _entry(fields: dict[str, Any]) -> Entry:
    if fields["format"] != FORMAT:
        raise ValueError(f"its format is {fields['format']!r}, {FORMAT!r} is known")
    files = {path: text.encode(_encoding(path)) for path, text in fields["files"].items()}
    spec = Spec(
        fields["name"],
        fields["entry"],
        tuple(fields["indices"]),
        fields["problem"],
        fields["spec"].encode(),
        files,
    )
    return Entry(spec, fields["device"])
