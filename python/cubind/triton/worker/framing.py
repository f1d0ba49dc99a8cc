"""Frames over a stream socket, as base/framing.hpp has them, and what is in them here.

frame   = length payload{length}
length  = u32, little-endian
payload = header_length header{header_length} bytes   ; header_length as length

The header is JSON. The bytes are TTIR in a request, the cubin in a reply.
"""

from __future__ import annotations

import json
import socket
from typing import Any

_LENGTH_BYTES = 4
_MAX_HEADER_BYTES = 8 << 20

Header = dict[str, Any]


class FrameError(Exception):
    """The peer sent what is no message. The stream may stand in the middle of a frame: close it."""


def send(stream: socket.socket, header: Header, content: bytes = b"") -> None:
    text = json.dumps(header, ensure_ascii=True, allow_nan=False).encode()
    payload = _length(text) + text + content
    stream.sendall(_length(payload) + payload)


def receive(stream: socket.socket, max_bytes: int) -> tuple[Header, bytes] | None:
    """Wait for one message; None where the peer has closed the stream.

    Raises FrameError for a frame of more than max_bytes, for which no memory is allocated, for one that ends
    too early, and for a header that is not a JSON object.
    """
    start = _exactly(stream, _LENGTH_BYTES, may_end=True)
    if start is None:
        return None
    length = int.from_bytes(start, "little")
    if length > max_bytes:
        raise FrameError(f"{length} bytes are announced, at most {max_bytes} are taken")
    payload = _exactly(stream, length) or b""
    header_length = int.from_bytes(payload[:_LENGTH_BYTES], "little")
    content_at = _LENGTH_BYTES + header_length
    if len(payload) < content_at or header_length > _MAX_HEADER_BYTES:
        raise FrameError(f"the header's length is {header_length} in a frame of {length} bytes")
    return _header(payload[_LENGTH_BYTES:content_at]), payload[content_at:]


def _header(text: bytes) -> Header:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"the header is not JSON: {error}") from None
    if not isinstance(header, dict):
        raise FrameError("the header is not a JSON object")
    return header


def _length(content: bytes) -> bytes:
    return len(content).to_bytes(_LENGTH_BYTES, "little")


def _exactly(stream: socket.socket, size: int, may_end: bool = False) -> bytes | None:
    parts: list[bytes] = []
    missing = size
    while missing:
        try:
            part = stream.recv(min(missing, 1 << 20))
        except ConnectionResetError:
            part = b""
        if not part:
            if may_end and missing == size:
                return None
            raise FrameError(f"the stream ends after {size - missing} of {size} bytes")
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)
