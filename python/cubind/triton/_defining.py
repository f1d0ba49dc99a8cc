"""Giving a daemon the definition of a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import _wire
from .._connection import Connection
from ._spec import MAX_MESSAGE_BYTES, Spec

_TIMEOUT = 60.0  # seconds for up to 64 MiB
_FRAME_BYTES = 256  # at most, for the names and sizes around a file


def define(connection: Connection, spec: Spec) -> None:
    """The daemon keeps the spec with its texts; one that it has it leaves as it is. Raises CubindError."""
    connection.upload("DefineKernel", _parts(spec), _wire.messages().DefineKernelReply, _TIMEOUT)


def _parts(spec: Spec) -> Iterator[Any]:
    """Messages as large as the daemon takes them. Texts go uncompressed."""
    part = _wire.messages().DefineKernelPart(spec_json=spec.json.decode())
    size = len(spec.json)
    for path, content in spec.files.items():
        if size + len(content) + _FRAME_BYTES > MAX_MESSAGE_BYTES - _FRAME_BYTES:
            yield part
            part, size = _wire.messages().DefineKernelPart(), 0
        part.files.add(path=path, content=content)
        size += len(content) + _FRAME_BYTES
    yield part
