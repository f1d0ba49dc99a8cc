"""The channel to a daemon: the one place that knows how a caller shows who it is and whom it trusts
(connect/channel.cpp is the same for C++)."""

from __future__ import annotations

import functools
import os
import pathlib
import sys
from collections.abc import Callable
from typing import Any

from .errors import InvalidArgumentError

_TLS = "tls://"


def import_grpc() -> Any:
    """The module. The first import keeps gRPC from writing its own words to stderr, which the
    exceptions explain, unless GRPC_VERBOSITY asks for them."""
    is_first = "grpc" not in sys.modules and "GRPC_VERBOSITY" not in os.environ
    if is_first:
        os.environ["GRPC_VERBOSITY"] = "NONE"
    try:
        import grpc  # see _connection
    finally:
        if is_first:
            del os.environ["GRPC_VERBOSITY"]
    return grpc


def open_channel(address: str, options: list[tuple[str, Any]]) -> Any:
    """ "tls://host:port" is TLS, with the certificates that CUBIND_CA_FILE, CUBIND_CLIENT_CERT and
    CUBIND_CLIENT_KEY name; "host:port" and "unix:///path" are not."""
    grpc = import_grpc()
    if not address.startswith(_TLS):
        return grpc.insecure_channel(address, options=options)
    certificate, key = _bytes_of("CUBIND_CLIENT_CERT"), _bytes_of("CUBIND_CLIENT_KEY")
    if (certificate is None) != (key is None):
        raise InvalidArgumentError(
            "go together: one of them is not set", field="CUBIND_CLIENT_CERT, CUBIND_CLIENT_KEY"
        )
    credentials = grpc.ssl_channel_credentials(_bytes_of("CUBIND_CA_FILE"), key, certificate)
    return grpc.secure_channel(address.removeprefix(_TLS), credentials, options=options)


def with_caller(address: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """The call with the name of this process, and with its token if it has one."""
    caller = ("cubind-caller", str(os.getpid()))
    return functools.partial(call, metadata=[caller, *_token(address)])


def _token(address: str) -> list[tuple[str, str]]:
    """The header with the token of CUBIND_TOKEN_FILE; on a Unix socket the daemon asks for none. Without TLS
    it needs CUBIND_INSECURE_TOKEN=1."""
    file = os.environ.get("CUBIND_TOKEN_FILE")
    if not file or address.startswith("unix:"):
        return []
    if not address.startswith(_TLS) and os.environ.get("CUBIND_INSECURE_TOKEN") != "1":
        raise InvalidArgumentError(
            f"the token would travel in clear: the address is {_TLS}{address} if the daemon has TLS; "
            "CUBIND_INSECURE_TOKEN=1 allows it in a network that you trust",
            field="CUBIND_TOKEN_FILE",
        )
    token = _read("CUBIND_TOKEN_FILE", file).decode(errors="replace").strip()
    if not token.startswith("cubind_") or len(token.split()) != 1:
        raise InvalidArgumentError(
            'holds no token: a line "cubind_ID_SECRET", as `cubindctl token new` prints it',
            field=f"CUBIND_TOKEN_FILE {file}",
        )
    return [("authorization", f"Bearer {token}")]


def _bytes_of(variable: str) -> bytes | None:
    file = os.environ.get(variable)
    return _read(variable, file) if file else None


def _read(variable: str, file: str) -> bytes:
    try:
        return pathlib.Path(file).read_bytes()
    except OSError as error:
        raise InvalidArgumentError(
            f"cannot be read: {os.strerror(error.errno or 0)}", field=f"{variable} {file}"
        ) from None
