"""Giving a daemon a kernel that is in none of its folders."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from . import _wire
from ._connection import Connection
from .errors import CubindError, InvalidArgumentError

MAX_MESSAGE_BYTES = 4 << 20
_TIMEOUT = 60.0  # seconds for up to 64 MiB
_FRAME_BYTES = 256  # at most, for the names and sizes around a file

# Configurations add in different orders, and inputs are normally distributed: relative, then absolute.
TOLERANCES = {
    "f64": (1e-9, 1e-9),
    "f32": (1e-3, 1e-3),
    "f16": (1e-2, 1e-2),
    "bf16": (4e-2, 4e-2),
    "e4m3": (0.13, 0.1),
    "e5m2": (0.26, 0.1),
    "i8": (0, 1),  # rounded from sums
    "u8": (0, 1),
}


def define(connection: Connection, spec_json: bytes, files: Mapping[str, bytes]) -> None:
    """The daemon keeps the spec with its files. Raises CubindError."""
    if len(spec_json) > MAX_MESSAGE_BYTES - _FRAME_BYTES:
        raise InvalidArgumentError(
            f"it has {len(spec_json) / (1 << 20):.1f} MiB, a message has at most 4: name fewer values", "spec"
        )
    connection.upload("DefineKernel", _parts(spec_json, files), _TIMEOUT)


def written(
    connection: Connection, spec: Mapping[str, Any], files: Mapping[str, bytes], problem: Mapping[str, int]
) -> list[int] | None:
    """The numbers of the parameters through which the kernel writes with its default configuration. None: the
    daemon does not tell, or has nothing that compiles it."""
    request = _wire.messages().CheckKernelRequest(file=f"{spec['name']}.json", spec_json=json.dumps(spec))
    for path, content in files.items():
        request.files.add(path=path, content=content)
    _wire.set_problem({**problem}, request.problems.add())
    try:
        reply = connection.unary("CheckKernel", request, _TIMEOUT)
    except CubindError:
        return None  # the job says why a source does not compile
    found = next(iter(reply.writes), None)
    return list(found.parameters) if found is not None and found.known else None


def _parts(spec_json: bytes, files: Mapping[str, bytes]) -> Iterator[Any]:
    """Messages as large as the daemon takes them. A file may go on in the next one. Texts go uncompressed."""
    message = _wire.messages().DefineKernelPart
    part, room = message(spec_json=spec_json.decode()), MAX_MESSAGE_BYTES - _FRAME_BYTES - len(spec_json)
    for path, content in files.items():
        at = 0
        while at < len(content) or not at:
            if room <= 2 * _FRAME_BYTES:
                yield part
                part, room = message(), MAX_MESSAGE_BYTES - _FRAME_BYTES
            piece = content[at : at + room - _FRAME_BYTES]
            part.files.add(path=path, content=piece)
            room -= len(piece) + _FRAME_BYTES
            at += max(len(piece), 1)
    yield part
