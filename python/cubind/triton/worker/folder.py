"""A worker's temporary folder, and those of workers that were killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import shutil
import tempfile
import time
from collections.abc import Iterator

_PREFIX = "cubind-triton-"
_SETTLED = 60.0  # seconds: a younger one may be one whose worker has not locked it yet


@contextlib.contextmanager
def temporary_folder(given: pathlib.Path | None) -> Iterator[pathlib.Path]:
    """A folder that is locked while this process lives, and is removed at the end. A worker that is
    killed leaves its own one to the next worker, and the given one to the parent that made it."""
    _remove_unlocked(given.parent if given else pathlib.Path(tempfile.gettempdir()))
    folder = given or pathlib.Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        with _locked(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_unlocked(parent: pathlib.Path) -> None:
    for folder in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # another's, or locked, or already gone
            found = folder.lstat()
            if found.st_uid == os.geteuid() and time.time() - found.st_mtime > _SETTLED:
                with _locked(folder):
                    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: pathlib.Path) -> Iterator[None]:
    """Raises OSError where another process has the lock."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(opened)
