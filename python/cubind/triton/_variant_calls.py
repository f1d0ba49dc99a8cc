"""Asking a daemon for a kernel, and giving it the definition of one that it does not know."""

from __future__ import annotations

import dataclasses
from typing import Any

from .. import _defining
from .._connection import Connection
from ..client import Client
from ..errors import DataLossError, NotFoundError
from ..question import Question
from ._spec import Spec


def define(connection: Connection, spec: Spec) -> None:
    """The daemon keeps the spec with its texts; one that it has it leaves as it is. Raises CubindError."""
    _defining.define(connection, spec.json, spec.files)


@dataclasses.dataclass(frozen=True)
class Target:
    """What is asked for: a kernel and its problem. hint: what the kernel's TTIR is made from; a daemon finds
    a kernel without a name by it. device: a GPU by CUDA's number."""

    name: str
    problem: dict[str, int]
    hint: str
    device: int


def variant(client: Client, target: Target, question: Question, timeout: float) -> Any:
    """The daemon's reply; only a question that waits has it wait for a compile. Raises CubindError."""
    request = client._request(target.name, dict(target.problem), question, target.device)
    request.hint = target.hint
    request.compile_wait_ms = 0
    if question.on_miss == "wait":
        request.ClearField("compile_wait_ms")  # as long as the call may take
    return client._connection.unary("GetVariant", request, timeout)


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
