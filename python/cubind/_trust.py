"""Whether an answer is signed for the question that was asked: by a key of the trust file."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from . import _core, _wire


def trust_file(given: str | os.PathLike[str] | None) -> str:
    """`given`, else CUBIND_TRUST; "": answers need no signature."""
    return os.fspath(given) if given is not None else os.environ.get("CUBIND_TRUST", "")


def check(trust: str, request: Any, reply: Any, cubin: bytes) -> None:
    """Raises PermissionDeniedError for an answer without a signature of a trusted key,
    FailedPreconditionError for one whose bundle has expired or is older than an earlier one, DataLossError at
    the field that differs from the signed fingerprint."""
    _core.check_signed(trust, _claims(request, reply, cubin), _wire.rule_json(reply))


def _claims(request: Any, reply: Any, cubin: bytes) -> str:
    provenance, artifact = reply.provenance, reply.artifact
    return json.dumps(
        {
            "namespace": request.namespace,
            "warm_l2": request.policy.warm_l2,
            "graph_launch": request.policy.graph_launch,
            "numerics": _numerics(request.numerics),
            "fingerprint": reply.fingerprint,
            "signature": reply.signature.hex(),
            "match": _wire.match_of(provenance.departures),
            "measured_problem": _wire.problem_json(provenance.measured_problem),
            "device_class": reply.device_class.hex(),
            "measured_device_class": provenance.measured_device_class.hex(),
            "artifact": artifact.key.hex(),
            "toolchain": artifact.toolchain,
            "architecture": artifact.architecture,
            "cubin": hashlib.sha256(cubin).hexdigest(),
            "cubin_bytes": len(cubin),
            "evidence": _wire.messages().Evidence.Name(provenance.evidence).lower(),
            "provisional": provenance.provisional,
        }
    )


def _numerics(numerics: Any) -> str:
    kinds = _wire.messages().Numerics
    if numerics.kind == kinds.INVARIANT:
        return f"invariant:{numerics.invariant_dim}"
    return "reproducible" if numerics.kind == kinds.REPRODUCIBLE else "tolerance"
