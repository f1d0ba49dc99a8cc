"""Asking a daemon for a kernel, and giving it the definition of one that it does not know."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

from .. import _wire
from .._connection import Connection
from ..client import Client
from ..errors import DataLossError, NotFoundError
from ..question import Question
from ._spec import MAX_MESSAGE_BYTES, Spec

_TIMEOUT = 60.0  # seconds for up to 64 MiB
_FRAME_BYTES = 256  # at most, for the names and sizes around a file


def define(connection: Connection, spec: Spec) -> None:
    """The daemon keeps the spec with its texts; one that it has it leaves as it is. Raises CubindError."""
    connection.upload("DefineKernel", _parts(spec), _wire.messages().DefineKernelReply, _TIMEOUT)


@dataclasses.dataclass(frozen=True)
class Target:
    """What is asked for: a kernel and its problem. hint: what the kernel's TTIR is made from; a daemon finds
    a kernel without a name by it. device: a GPU by CUDA's number."""

    name: str
    problem: dict[str, int]
    hint: str
    device: int


def variant(client: Client, target: Target, question: Question, timeout: float) -> Any:
    """The daemon's reply for the kernel; only a question that waits has it wait for a compile. Raises
    CubindError."""
    request = client._request(target.name, dict(target.problem), question, target.device)
    request.hint = target.hint
    request.compile_wait_ms = 0
    if question.on_miss == "wait":
        request.ClearField("compile_wait_ms")  # as long as the call may take
    return client._connection.unary("GetVariant", request, _wire.messages().GetVariantReply, timeout)


def hinted_variant(client: Client, target: Target, question: Question, timeout: float) -> Any:
    """The same for a kernel without a name; None: the daemon does not know its hint."""
    try:
        return variant(client, target, question, timeout)
    except NotFoundError:
        return None


def defined_variant(client: Client, spec: Spec, target: Target, question: Question, timeout: float) -> Any:
    """The same for the spec's kernel, which is defined first if the daemon does not know it."""
    target = dataclasses.replace(target, name=spec.name)
    try:
        reply = variant(client, target, question, timeout)
    except NotFoundError:
        define(client._connection, spec)
        reply = variant(client, target, question, timeout)
    if reply.kernel != spec.name:
        raise DataLossError(f"asked for {spec.name}, the answer is for {reply.kernel}", "kernel")
    return reply


def trials(
    client: Client, kernel: str, timeout: float, include_samples: bool = False
) -> list[dict[str, Any]]:
    """What the daemon knows of a kernel's configurations: the trials of its table. Raises CubindError."""
    messages = _wire.messages()
    request = messages.ExportTableRequest(
        kernels=[kernel],
        all_trials=True,
        include_samples=include_samples,
        include_replayed=True,
        include_provisional=True,
    )
    chunks = client._connection.stream("ExportTable", request, messages.TableChunk, timeout)
    found: list[dict[str, Any]] = json.loads(b"".join(chunk.json for chunk in chunks)).get("trials", [])
    return found


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
