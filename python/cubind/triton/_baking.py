"""Having a daemon compile all that a program has recorded, before any process asks for it."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
from collections.abc import Callable, Iterable
from typing import Any

from .. import _wire
from ..client import Client
from ..errors import CubindError
from ._recording import Entry
from ._single import PROBLEM, singles_of
from ._spec import Spec
from ._variant_calls import define

_COMPILE_TIMEOUT = 600.0  # seconds for a kernel, which may wait for others


@dataclasses.dataclass(frozen=True)
class Baked:
    """kernels: how many can be served. failed: why others cannot, by name."""

    kernels: int
    failed: dict[str, str]


def bake(client: Client, entries: Iterable[Entry]) -> Baked:
    """Defines the kernels and waits for all compiles. Raises CubindError if the daemon does not answer."""
    orders: dict[str, tuple[Spec, dict[str, Any]]] = {}
    failed: dict[str, str] = {}
    for entry in entries:
        if cause := _define(client, entry.spec):
            failed[entry.spec.name] = cause
            continue
        for spec in singles_of(entry.spec):
            orders.setdefault(spec.name, (spec, entry.device))
    with concurrent.futures.ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as pool:
        causes = dict(zip(orders, pool.map(lambda order: _compile(client, *order), orders.values())))
    unserved = {name: cause for name, cause in causes.items() if cause}
    return Baked(len(causes) - len(unserved), failed | unserved)


def _define(client: Client, spec: Spec) -> str:
    """Why the daemon does not take it; "": it has it."""
    return _refusal(client, lambda: define(client._connection, spec))


def _refusal(client: Client, call: Callable[[], Any]) -> str:
    """Why the daemon refuses a call; "": it does not. Raises CubindError if it does not answer."""
    try:
        call()
    except CubindError as error:
        if error.field == client.address:
            raise
        return str(error)
    return ""


def _compile(client: Client, spec: Spec, device: dict[str, Any]) -> str:
    """Why it is not compiled; "": it is."""
    messages = _wire.messages()
    request = messages.GetVariantRequest(kernel=spec.name, on_miss=messages.WAIT, tune=messages.NEVER)
    _wire.set_problem(dict(PROBLEM), request.problem)
    try:
        _wire.set_gpu(device, request.device)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return f"its GPU is described in another way than by this version of cubind: {error}"
    return _define(client, spec) or _refusal(
        client, lambda: client._connection.unary("GetVariant", request, _COMPILE_TIMEOUT)
    )
