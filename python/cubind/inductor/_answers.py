"""The stored choices: a daemon keeps each as a record of a table. Its kernel's name is the question's digest,
its cubin's digest is that of the candidate, its configuration has the candidate's number; `table` calls read
and write it.

The first choice that is stored stays. Nothing of it has been verified, and its time is what Inductor has
measured.
"""

from __future__ import annotations

import datetime
import json
from typing import Any

from .. import _core, _tables, _wire
from ..client import Client
from ..errors import FailedPreconditionError, NotFoundError
from ._question import Choice, Question, digest

CALL_TIMEOUT = 2.0  # seconds
_CANDIDATE = "CANDIDATE"  # in a record's configuration
_UNUSED = "0" * 64
_LONGEST_US = 3.6e9
_CLASS_FACTS = (
    "pci_device_id",
    "cc_major",
    "cc_minor",
    "sm_count",
    "l2_bytes",
    "shared_optin_bytes",
    "memory_bus_bits",
    "mig_profile",
)


class Answers:
    """Those of a daemon. All calls raise CubindError."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._devices: dict[int, Any] = {}  # messages DeviceClass by CUDA's number

    def store(self) -> str:
        """The store that the daemon has opened, by its id."""
        request = _wire.messages().GetStatusRequest()
        status = self._client._connection.unary("GetStatus", request, CALL_TIMEOUT)
        return status.generation.store_id.hex()

    def ask(self, question: Question) -> Choice | None:
        """The stored one; None: no candidate of these is stored."""
        try:
            exported = _tables.export(
                self._client._connection, CALL_TIMEOUT, kernels=[question.name], include_replayed=True
            )
        except NotFoundError:
            return None
        for record in json.loads(exported)["records"]:
            if record["kernel"] != question.name or record["interface"] != question.digest:
                continue
            values, artifact = record["configuration"], record["artifact"]
            time_ms = record["time_us"] / 1000.0
            if not question.candidates:
                return Choice(0, time_ms, values, artifact)
            number = values.pop(_CANDIDATE, -1)
            if 0 <= number < len(question.candidates) and artifact == question.candidates[number]:
                return Choice(number, time_ms, values)
        return None

    def offer(self, question: Question, choice: Choice) -> Choice:
        """Stores the choice unless one is stored; the one that is."""
        text = json.dumps(self._table(question, choice))
        chunks = [_wire.messages().TableChunk(json=text.encode(), file="cubind.inductor", only_new=True)]
        reply = self._client._connection.upload("ImportTable", chunks, CALL_TIMEOUT)
        if reply.records_added:
            return choice
        stored = self.ask(question)
        if stored is None:
            raise FailedPreconditionError("the daemon does not give what it has stored", question.name)
        return stored

    def _table(self, question: Question, choice: Choice) -> dict[str, Any]:
        device, driver = self._device(question.device)
        facts = _wire.to_dict(device.facts)
        facts["compute_capability"] = f"{facts.pop('cc_major', 0)}.{facts.pop('cc_minor', 0)}"
        candidate, values = choice.among, choice.values
        if question.candidates:
            candidate = question.candidates[choice.number]
            values = {_CANDIDATE: choice.number, **values}
        time_us = min(1000.0 * choice.time_ms, _LONGEST_US)
        record = {
            "kernel": question.name,
            "interface": question.digest,
            "problem": {"dims": {"CANDIDATES": len(question.candidates)}, "types": {}},
            "device": device.digest.hex(),
            "policy": "cold/1,stream",
            "numerics": "tolerance",
            "configuration": values,
            "trial": digest(f"{question.digest} {candidate}"),
            "artifact": candidate,
            "architecture": f"sm_{device.facts.cc_major}{device.facts.cc_minor}",
            "time_us": time_us,
            "time_low_us": time_us,
            "time_high_us": time_us,
            "samples": 1,
            "timer": "inductor",
            "evidence": "imported",
            "driver": driver["version"],
            "driver_cuda": driver["cuda"],
            "toolchain": {
                "name": f"{question.toolchain}: {question.what}",
                "nvrtc": _UNUSED,
                "builtins": _UNUSED,
                "headers": _UNUSED,
            },
            "measured_at": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "verification": {"verified": False, "digest": _UNUSED, "reference": "default"},
        }
        told = {"class": device.digest.hex(), "label": device.label, "facts": facts}
        return {"format": "cubind-table", "version": 1, "devices": [told], "records": [record]}

    def _device(self, ordinal: int) -> tuple[Any, dict[str, Any]]:
        """The GPU as one of the daemon's device classes, and its driver."""
        known = _core.gpu(ordinal)
        if ordinal not in self._devices:
            request = _wire.messages().ListDevicesRequest()
            listed = self._client._connection.unary("ListDevices", request, CALL_TIMEOUT).devices
            same = [each for each in listed if _are_alike(each.facts, known["facts"])]
            if not same:
                raise FailedPreconditionError("the daemon has no agent with this GPU", "device")
            self._devices[ordinal] = same[0]
        return self._devices[ordinal], known["driver"]


def _are_alike(facts: Any, known: dict[str, Any]) -> bool:
    return all(getattr(facts, name) == known.get(name, getattr(facts, name)) for name in _CLASS_FACTS)
