"""A private daemon, shared by the processes of the user and ended when the last of them has left.

Each process holds a shared lock on a file as long as it uses the daemon. The daemon (`cubind --until-unlocked
FILE`) tries once a second to lock the file for itself. If it can, no process is left, and it ends. The kernel
releases the lock of a process that was killed."""

from __future__ import annotations

import dataclasses
import fcntl
import os
import pathlib
import subprocess
import time
from collections.abc import Iterable

from . import _address, programs
from .errors import CubindError, NotFoundError, UnavailableError

_STORE_IS_TAKEN = "has it open"  # the daemon's own words
_PATIENCE = 60.0  # seconds until a started daemon listens
_OTHER_FOLDERS = "XDG_RUNTIME_DIR names another folder for its socket, XDG_CACHE_HOME for its store"


class EmbeddedDaemon:
    """The claim of this process on the user's private daemon, which is started if none runs. Raises
    UnavailableError if the daemon does not start (with the end of its log), if its folders cannot be written,
    or if its program is missing. Forked children share the claim."""

    def __init__(self) -> None:
        try:
            self._open()
        except CubindError:
            raise
        except OSError as error:
            raise UnavailableError(
                f"the private daemon cannot have its files here: {error.strerror}; {_OTHER_FOLDERS}",
                str(error.filename or ""),
            ) from None

    def _open(self) -> None:
        self._folder = _runtime_folder()
        self._socket = self._folder / "cubind.sock"
        self._users = (self._folder / "users.lock").open("a")
        fcntl.flock(self._users, fcntl.LOCK_SH)  # waits for a daemon that is ending
        with (self._folder / "start.lock").open("a") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            try:
                # It does not end while this process holds its lock.
                if not listens(self._socket):
                    self._start()
            finally:
                # Closing the file would not do: a child forked meanwhile has it open too.
                fcntl.flock(starting, fcntl.LOCK_UN)

    @property
    def address(self) -> str:
        return f"unix://{self._socket}"

    def close(self) -> None:
        """Gives the claim up, as the end of the process or of this object does."""
        self._users.close()

    def __del__(self) -> None:
        if "_users" in vars(self):
            self._users.close()

    def _start(self) -> None:
        store = _cache_folder() / "store.db"
        files = DaemonFiles(self._socket, store, self._folder / "users.lock", self._folder / "cubind.log")
        # A daemon whose starter was killed still holds the store for a second or two.
        for last in (False, False, True):
            if self._runs(files, last):
                return
            time.sleep(1)

    def _runs(self, files: DaemonFiles, last: bool) -> bool:
        try:
            process = start_daemon(files)
        except NotFoundError as error:
            raise UnavailableError(
                f"the private daemon has no program, it {error.cause}: install cubind's wheel, or name the "
                "folder of its programs by CUBIND_PROGRAMS",
                error.field,
            ) from None
        try:
            return self._await(process, files.log, last)
        except BaseException:  # Ctrl-C too
            process.kill()
            process.wait()
            raise

    # Whether the daemon listens. False if it ended and is worth another start.
    def _await(self, process: subprocess.Popen[bytes], log: pathlib.Path, last: bool) -> bool:
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until and process.poll() is None:
            if listens(self._socket):
                return True
            time.sleep(0.01)
        ended = process.poll()
        if ended is not None and not last and _STORE_IS_TAKEN in log.read_text(errors="replace"):
            return False
        what = f"did not listen within {_PATIENCE:.0f} s" if ended is None else "ended while it started"
        raise UnavailableError(
            f"the private daemon {what}: {log.read_text()[-2000:].strip()}; {_OTHER_FOLDERS}", str(log)
        )


@dataclasses.dataclass(frozen=True)
class DaemonFiles:
    """The files of a daemon that lives as long as a process holds a lock on `users`."""

    socket: pathlib.Path
    store: pathlib.Path
    users: pathlib.Path
    log: pathlib.Path


def start_daemon(files: DaemonFiles, arguments: Iterable[str] = ()) -> subprocess.Popen[bytes]:
    """Starts `cubind` with these files, in a session of its own: a terminal's Ctrl-C is not for it. Raises
    NotFoundError if the package has no such program."""
    program = programs.program("cubind")
    own = ("--socket", files.socket, "--db", files.store, "--until-unlocked", files.users)
    with files.log.open("w") as log:
        return subprocess.Popen(
            [program, *own, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=programs.environment(),
        )


def listens(path: pathlib.Path) -> bool:
    return not _address.refusal(path)


def _runtime_folder() -> pathlib.Path:
    """Socket and locks: on a local file system, short enough for a socket's path, this user's alone."""
    folder = _address.runtime_folder() / "embedded"
    for each in (folder.parent, folder):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
        if why_not := _address.foreign_owner(each):
            raise UnavailableError(
                f"the private daemon cannot have its files here: {why_not}; {_OTHER_FOLDERS}"
            )
    if folder.stat().st_uid != os.getuid():
        raise UnavailableError("belongs to another user", str(folder))
    return folder


def _cache_folder() -> pathlib.Path:
    try:
        folder = cache_folder() / "embedded"
    except UnavailableError as error:
        raise UnavailableError(
            f"the private daemon has no folder for its store: {error.cause}; {_OTHER_FOLDERS}"
        ) from None
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def cache_folder() -> pathlib.Path:
    """The folder of what can be made again. Raises UnavailableError if there is none."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (pathlib.Path(base) if base else pathlib.Path.home() / ".cache") / "cubind"
    except RuntimeError:
        raise UnavailableError("the user has no home") from None
