"""Where the daemon is."""

from __future__ import annotations

import os
import pathlib
import re

from .errors import InvalidArgumentError

SYSTEM_SOCKET = pathlib.Path("/run/cubind/cubind.sock")
THREE_WAYS = (
    "start a daemon with `cubind &`, name one by CUBIND_ADDRESS (or cubind.connect(address)), "
    'or let the package start a private one: cubind.connect("embedded") or CUBIND_EMBEDDED=1'
)


def runtime_folder() -> pathlib.Path:
    """The folder of the user's sockets."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return pathlib.Path(runtime, "cubind") if runtime else pathlib.Path(f"/tmp/cubind-{os.getuid()}")


def find_address(given: str | None) -> str | None:
    """`given`, else CUBIND_ADDRESS, else the socket of the user's daemon or the system's, whichever exists;
    else None."""
    address = given or os.environ.get("CUBIND_ADDRESS")
    if address:
        check_address(address)
        return address
    for socket in (runtime_folder() / "cubind.sock", SYSTEM_SOCKET):
        if socket.exists():
            return f"unix://{socket}"
    return None


def check_address(address: str) -> None:
    """Raises InvalidArgumentError for anything but unix:///path and host:port."""
    if not re.fullmatch(r"unix:/.+|[^:/].*:\d+", address):
        raise InvalidArgumentError(
            f'"{address}" is neither unix:///path/to/socket nor host:port', field="address"
        )
