"""Where the daemon is."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re

from .errors import InvalidArgumentError

SYSTEM_SOCKET = pathlib.Path("/run/cubind/cubind.sock")
THREE_WAYS = (
    "start a daemon with `cubind &`, name one by CUBIND_ADDRESS (or cubind.connect(address)), "
    'or let the package start a private one: cubind.connect("embedded")'
)
_MAX_SOCKET_PATH = 107  # bytes
_MAX_PORT = 65535
_PROBE = 1.0  # seconds that a daemon has to take a connection


def runtime_folder() -> pathlib.Path:
    """The folder of the user's sockets."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return pathlib.Path(runtime, "cubind") if runtime else _folder_in_tmp()


def _folder_in_tmp() -> pathlib.Path:
    return pathlib.Path(f"/tmp/cubind-{os.getuid()}")


def find_address(given: str | None) -> tuple[str | None, str]:
    """`given`, else CUBIND_ADDRESS, else the socket on which the user's daemon listens, else the system's;
    else None. And what was tried: "/run/cubind/cubind.sock: No such file or directory"."""
    address = given or os.environ.get("CUBIND_ADDRESS")
    if address:
        check_address(address)
        return address, ""
    tried = []
    for socket in (runtime_folder() / "cubind.sock", SYSTEM_SOCKET):
        why_not = foreign_owner(socket) or refusal(socket)
        if not why_not:
            return f"unix://{socket}", ""
        tried.append(f"{socket}: {why_not}")
    return None, "; ".join(tried)


def foreign_owner(path: pathlib.Path) -> str:
    """Why a path in the user's folder in /tmp, where others could have made it, is not to be trusted; "" if
    it, or any path elsewhere, is."""
    folder = _folder_in_tmp()
    if folder in (path, *path.parents):
        for each in (folder, path):
            with contextlib.suppress(OSError):
                if each.lstat().st_uid not in (os.getuid(), 0):
                    return f"{each} belongs to another user"
    return ""


def refusal(path: pathlib.Path) -> str:
    """Why no daemon takes a connection at this socket; "" if one does. The file alone says nothing: a daemon
    that was killed leaves it behind."""
    import socket  # only while a daemon is looked for

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE)
        try:
            probe.connect(str(path))
        except (BlockingIOError, TimeoutError):
            return ""  # many connect at once
        except ConnectionRefusedError:
            return "the daemon of this socket has ended"
        except OSError as error:
            return os.strerror(error.errno) if error.errno else str(error)
        return ""


def check_address(address: str) -> None:
    """Raises InvalidArgumentError for anything but unix:///path, of a path that fits into a socket's address,
    host:port and tls://host:port."""
    path = re.match(r"unix:(?://)?(/.*)", address, re.DOTALL)
    if path is not None and len(os.fsencode(path[1])) > _MAX_SOCKET_PATH:
        raise InvalidArgumentError(
            f'"{address}": the path has {len(os.fsencode(path[1]))} bytes, a socket\'s at most '
            f"{_MAX_SOCKET_PATH}: start the daemon with --socket in a folder nearer to the root",
            field="address",
        )
    target = address.removeprefix("tls://")
    if path is None and "://" in target:
        raise InvalidArgumentError(
            f'"{address}" is a web address, and a daemon is not a web server: write host:port, '
            "tls://host:port or unix:///path",
            field="address",
        )
    tcp = re.fullmatch(r"[^:/].*:([0-9]+)", target, re.DOTALL)
    if not re.fullmatch(r"unix:/+[^/].*", address, re.DOTALL) and not tcp:
        raise InvalidArgumentError(
            f'"{address}" is neither unix:///path/to/socket nor host:port nor tls://host:port',
            field="address",
        )
    # gRPC would connect to the port modulo 65536.
    if tcp and (not (port := tcp[1].lstrip("0")) or len(port) > 5 or int(port) > _MAX_PORT):
        raise InvalidArgumentError(f'"{address}": a port is 1 to {_MAX_PORT}', field="address")
