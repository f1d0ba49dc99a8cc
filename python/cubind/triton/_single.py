"""The spec of one kernel as it is, which an agent compiles and never measures.

Its only configuration is the TTIR with the options of the compile behind it. Its arguments say how many
parameters the kernel has and how large they are: a daemon checks this against the cubin.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from . import definition as d
from ._own import StaysOwnError
from ._spec import SCALARS, Spec, check_count, make_spec

PROBLEM = {"calls": 1}  # no argument of a call is part of it
_POINTER = "*"
_FLOATS = ("f64", "f32", "f16", "bf16")


def parameters_of(signature: dict[str, Any]) -> list[str]:
    """The kernel's parameters: "*" for a tensor, else the type of a scalar in a spec's words. Raises
    StaysOwnError for what a spec cannot say."""
    kinds = [kind for kind in signature.values() if kind != "constexpr"]
    check_count(len(kinds))
    found = [_parameter(kind) for kind in kinds]
    if _POINTER not in found:
        raise StaysOwnError("takes no tensor")
    return found


def single(
    code: dict[str, Any], function: str, parameters: list[str], options: dict[str, Any], text: bytes
) -> Spec:
    """code: of code_of(), without a key. function: a label. Raises StaysOwnError."""
    name = d.digest(text)
    fields = {
        "description": f"{function}, compiled for cubind.triton",
        "configurations": [{"index": 0, "ttir": name, "options": options, "grid": [1, 1, 1], "values": {}}],
        "arguments": {f"a{position}": _argument(each) for position, each in enumerate(parameters)},
        "tolerance": {"u8": {"rtol": 0, "atol": 0}},
    }
    return make_spec(code, PROBLEM, fields, {name: text})


def singles_of(spec: Spec) -> Iterator[Spec]:
    """Each configuration of an autotuned kernel's spec as a kernel of its own: the process that launches it
    asks for it by this name."""
    document = json.loads(spec.json)
    if len(document["configurations"]) == 1:
        yield spec
        return
    code = {**document["triton"], "key": []}
    parameters = [
        _POINTER if "buffer" in argument else argument["scalar"]
        for argument in document["arguments"].values()
    ]
    function = document["description"].split(",")[0]
    for one in document["configurations"]:
        yield single(code, function, parameters, one["options"], spec.files[f"{one['ttir']}.ttir"])


def _parameter(kind: Any) -> str:
    if isinstance(kind, str) and kind.startswith(_POINTER):
        return _POINTER
    type_ = SCALARS.get(kind) if isinstance(kind, str) else None
    if type_ is None:
        raise StaysOwnError(f"has an argument of type {kind}, which cubind does not pass"[:256])
    return type_


def _argument(parameter: str) -> dict[str, Any]:
    """By position: names are the function's own."""
    if parameter == _POINTER:
        return {"buffer": "u8", "extent": 1, "role": "out"}
    if parameter in _FLOATS:
        return {"scalar": parameter, "from": "caller", "bench": 1}
    return {"scalar": parameter, "expr": 0}
