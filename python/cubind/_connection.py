"""The rpcs of the daemon: channel, deadlines, status to exception. The only module that knows gRPC, and it
imports it at the first call: importing gRPC takes longer than everything else of this package."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from . import _channel, _fork, _wire
from ._address import THREE_WAYS
from .errors import DataLossError, make_error

_OPTIONS = [
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2000),
    # A stopped daemon still takes connections: the system does that for it.
    ("grpc.min_reconnect_backoff_ms", 10_000),
    # During a call the daemon is asked whether it lives (schemas/keepalive.hpp has the same numbers): a call
    # without a deadline ends if the daemon is stopped or its machine is gone.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.ping_timeout_ms", 20_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.use_local_subchannel_pool", 1),
]
# The trailing metadata of every call that a daemon ends (schemas/status_mark.hpp). A status without it is
# gRPC's own or a proxy's, whatever its words.
_MARK = "cubind-status"
# "problem.dims.N: is 0, must be ..." begins with the field's path.
_FIELD = re.compile(r"([A-Za-z_][\w.\[\]]*): (.*)", re.DOTALL)

# Channels of a parent process: never closed here, since closing one waits for threads that a fork does not
# copy.
_abandoned: list[Any] = []


def import_grpc() -> None:
    """Imports now what the first call would import. An import by another thread holds up all threads."""
    with contextlib.suppress(ImportError):  # which the first call will raise
        _channel.import_grpc()
        _wire.messages()


class Connection:
    """One channel, made when it is first needed, and made again in a forked child. Safe on many threads."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._lock = threading.Lock()
        self._channel: Any = None
        self._calls: dict[str, Callable[..., Any]] = {}
        _fork.watch(self)

    def after_fork(self) -> None:
        """In the child: the parent's channel and lock are left alone."""
        self._lock = threading.Lock()
        if self._channel is not None:
            _abandoned.append((self._channel, self._calls))
        self._channel, self._calls = None, {}

    def close(self) -> None:
        """Ends the connection. A later call makes another one."""
        with self._lock:
            channel, self._channel, self._calls = self._channel, None, {}
        if channel is not None:
            channel.close()

    def unary(self, name: str, request: Any, timeout: float | None) -> Any:
        """One request, one reply. timeout: seconds, None waits forever."""
        call = self._call(name, "unary_unary")
        return self._parsed(name, self._checked(lambda: call(request, timeout=timeout), timeout))

    def stream(self, name: str, request: Any, timeout: float | None) -> Iterator[Any]:
        """One request, replies until the daemon ends them. Closing the iterator cancels the call."""
        call = self._call(name, "unary_stream")
        replies = call(request, timeout=timeout)
        try:
            while (message := self._checked(lambda: next(replies, None), timeout)) is not None:
                yield self._parsed(name, message)
        finally:
            replies.cancel()

    def upload(self, name: str, requests: Iterable[Any], timeout: float | None) -> Any:
        call = self._call(name, "stream_unary")
        return self._parsed(name, self._checked(lambda: call(iter(requests), timeout=timeout), timeout))

    def _call(self, name: str, kind: str) -> Callable[..., Any]:
        call = self._calls.get(name)
        if call is None:
            with self._lock:
                call = self._calls[name] = self._make_call(name, kind)
        return call

    def _make_call(self, name: str, kind: str) -> Callable[..., Any]:
        if self._channel is None:
            self._channel = _channel.open_channel(self.address, _OPTIONS)
        make: Callable[..., Any] = getattr(self._channel, kind)
        call = make(
            f"/cubind.v1.Cubind/{name}", request_serializer=lambda message: message.SerializeToString()
        )
        return _channel.with_caller(self.address, call)

    def _checked(self, call: Callable[[], Any], timeout: float | None) -> Any:
        import grpc

        try:
            return call()
        except grpc.RpcError as error:
            status: Any = error
            raise self._error(status, timeout) from None

    def _parsed(self, name: str, data: bytes) -> Any:
        from google.protobuf.message import DecodeError

        try:
            return _wire.reply_of(name).FromString(data)
        except DecodeError:
            raise DataLossError(
                "the reply is no message of cubind: another service answers", self.address
            ) from None

    def _error(self, status: Any, timeout: float | None) -> Exception:
        number, words = int(status.code().value[0]), status.details() or ""
        if _MARK in (name for name, _ in status.trailing_metadata() or ()):
            found = _FIELD.fullmatch(words) if number == 3 else None
            return make_error(number, found[1], found[2]) if found else make_error(number, "", words)
        if number == 14:
            cause = f"no daemon answers there ({words}): {self._remedy()}"
        elif number == 4:
            within = "in time" if timeout is None else f"within {timeout:g} s"
            cause = f"no answer {within}: `cubindctl health` says whether the daemon lives"
        elif number == 8 and "larger than max" in words:
            cause = f"the call or its answer is too large ({words})"
        else:
            cause = (
                f"the call failed ({words}), not by the daemon's word: another service, a proxy or a daemon of "
                "another version may have the address"
            )
        return make_error(number, self.address, cause)

    def _remedy(self) -> str:
        if self.address.startswith("tls://"):
            return (
                "if the TLS handshake failed, CUBIND_CA_FILE names the CA that has signed the daemon's "
                "certificate, which must have the host of the address; a daemon with --tls-client-ca asks for "
                "CUBIND_CLIENT_CERT and CUBIND_CLIENT_KEY too"
            )
        if not self.address.startswith("unix:"):
            return f"a daemon with TLS has the address tls://HOST:PORT; {THREE_WAYS}"
        return f"{THREE_WAYS}. A daemon that is stopped keeps its socket: kill -CONT goes on with it"
