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
from .errors import DataLossError, DeadlineExceededError, UnavailableError, make_error

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
# gRPC's own words if no daemon listens; the daemon's own UNAVAILABLE has other words.
_CONNECT_FAILURE = re.compile(
    r"failed to connect|connect failed|No such file|Connection refused|connections to all backends failing|"
    r"resolv|resolution"
)
# gRPC's own words if the daemon does not answer, or shows a certificate that is not trusted.
_WAYS_TO_FAIL = (
    (
        re.compile(r"SETTINGS frame|keepalive|ping timeout"),
        "a daemon has its socket there and does not answer: it is stopped (kill -CONT goes on with it), or its "
        "machine has no time for it: `cubindctl health` asks whether it lives",
    ),
    (
        re.compile(r"CERTIFICATE_VERIFY_FAILED|[Pp]eer name|Hostname Verification"),
        "the daemon's certificate is not trusted: CUBIND_CA_FILE names the CA that has signed it, and the "
        "certificate must have the host of the address",
    ),
)
# gRPC's own words if the other end closes before it has said anything.
_CLOSED_AT_ONCE = re.compile(
    r"failed to connect.*(Endpoint read failed|Socket closed|Connection reset)", re.DOTALL
)
# gRPC's own words if the daemon ends during a call.
_CONNECTION_LOSS = re.compile(
    r"Socket closed|Connection reset|Broken pipe|recvmsg|GOAWAY|Cancelling all calls"
)
_WHY_NONE = {
    "No such file": " (there is no such socket)",
    "Connection refused": " (nothing listens there)",
    "Permission denied": " (the socket is another user's, who can open one to a group: cubind --socket-group)",
    "timed out": " (its host does not answer)",
    "resolv": " (there is no such host)",
    "resolution": " (there is no such host)",
    "http1": " (another service does)",
}
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

    def unary(self, name: str, request: Any, reply: Any, timeout: float | None) -> Any:
        """One request, one reply of the message class `reply`. timeout: seconds, None waits forever."""
        call = self._call(name, "unary_unary", reply)
        return self._checked(lambda: call(request, timeout=timeout), timeout)

    def stream(self, name: str, request: Any, reply: Any, timeout: float | None) -> Iterator[Any]:
        """One request, replies until the daemon ends them. Closing the iterator cancels the call."""
        call = self._call(name, "unary_stream", reply)
        replies = call(request, timeout=timeout)
        try:
            while (message := self._checked(lambda: next(replies, None), timeout)) is not None:
                yield message
        finally:
            replies.cancel()

    def upload(self, name: str, requests: Iterable[Any], reply: Any, timeout: float | None) -> Any:
        """Many requests, one reply."""
        call = self._call(name, "stream_unary", reply)
        return self._checked(lambda: call(iter(requests), timeout=timeout), timeout)

    def _call(self, name: str, kind: str, reply: Any) -> Callable[..., Any]:
        call = self._calls.get(name)
        if call is None:
            with self._lock:
                call = self._calls[name] = self._make_call(name, kind, reply)
        return call

    def _make_call(self, name: str, kind: str, reply: Any) -> Callable[..., Any]:
        if self._channel is None:
            self._channel = _channel.open_channel(self.address, _OPTIONS)
        make: Callable[..., Any] = getattr(self._channel, kind)
        call = make(
            f"/cubind.v1.Cubind/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=reply.FromString,
        )
        return _channel.with_token(self.address, call)

    def _checked(self, call: Callable[[], Any], timeout: float | None) -> Any:
        import grpc

        try:
            return call()
        except grpc.RpcError as error:
            status: Any = error
            raise self._error(int(status.code().value[0]), status.details() or "", timeout) from None

    def _connection_fault(self, details: str) -> str:
        """What gRPC's own words mean if it is the connection that failed; "": they are the daemon's."""
        # The daemon's, of the server that its store lies in, or of a kernel of any name.
        if details.startswith(("store: ", "kernel ")):
            return ""
        for words, cause in _WAYS_TO_FAIL:
            if words.search(details):
                return cause
        if not self.address.startswith("unix:") and _CLOSED_AT_ONCE.search(details):
            told = "a daemon with TLS has the address tls://HOST:PORT"
            if self.address.startswith("tls://"):
                told = "a daemon with --tls-client-ca asks for CUBIND_CLIENT_CERT and CUBIND_CLIENT_KEY"
            return f"the connection was closed at once: {told}"
        if _CONNECT_FAILURE.search(details):
            why = next((told for words, told in _WHY_NONE.items() if words in details), "")
            return f"no daemon answers there{why}: {THREE_WAYS}"
        if _CONNECTION_LOSS.search(details):
            return f"the daemon ended during the call: {THREE_WAYS}"
        return ""

    def _error(self, number: int, details: str, timeout: float | None) -> Exception:
        cause = self._connection_fault(details) if number == 14 else ""
        if cause:
            return UnavailableError(cause, field=self.address)
        if (
            number == 4 and details == "Deadline Exceeded"
        ):  # gRPC's own words; the daemon says what it waits for
            cause = f"no answer within {timeout:g} s: `cubindctl health` says whether the daemon lives"
            return DeadlineExceededError(cause, field=self.address)
        if number == 13 and "deserializing" in details:
            return DataLossError("the reply is no message of cubind: another service answers", self.address)
        found = _FIELD.fullmatch(details) if number == 3 else None
        return make_error(number, found[1], found[2]) if found else make_error(number, "", details)
