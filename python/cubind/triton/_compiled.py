"""The spec of one kernel as it is, which an agent compiles and never measures.

Its only configuration is the TTIR with the options of the compile behind it. Its arguments say how many
parameters the kernel has and how large they are: a daemon checks this against the cubin.
"""

from __future__ import annotations

import functools
from typing import Any

import triton

from . import _triton_private as private
from . import definition as d
from ._own import StaysOwnError
from ._spec import SCALARS, Spec, check_count, code_of, make_spec
from ._triton_cache import Compiling
from .worker.toolchain import ptxas_version

_PROBLEM = {"calls": 1}  # no argument of a call is part of it
_FLOATS = ("f64", "f32", "f16", "bf16")


class Kernel:
    """A kernel that Triton is about to compile. Its spec takes some milliseconds, on any thread."""

    def __init__(self, compiling: Compiling) -> None:
        self.compiling = compiling
        source = compiling.source
        self.function = f"{source.source.fn.__module__}.{source.source.fn.__qualname__}"[-d.MAX_NAME :]

    @functools.cached_property
    def spec(self) -> Spec:
        """The spec. Raises StaysOwnError for a kernel that only this process can compile."""
        private.check_environment()
        source = self.compiling.source
        options = private.options_of(source.options)
        arguments = _arguments(source.signature)
        try:
            module = private.TtirMaker().module(source)
        except Exception as error:  # Triton will say so
            raise StaysOwnError(f"has no TTIR: {type(error).__name__}"[:256]) from None
        text = module.str_nodebug().encode()
        capability = source.target.arch
        code = code_of(
            triton.__version__,
            ptxas_version(capability),
            f"sm_{capability}",
            module.get_entry_func_name(),
            [],
        )
        return make_spec(
            code, _PROBLEM, _fields(self.function, text, options, arguments), {d.digest(text): text}
        )


def _fields(
    function: str, text: bytes, options: dict[str, int | bool], arguments: dict[str, Any]
) -> dict[str, Any]:
    return {
        "description": f"{function}, compiled for cubind.triton",
        "configurations": [
            {"index": 0, "ttir": d.digest(text), "options": options, "grid": [1, 1, 1], "values": {}}
        ],
        "arguments": arguments,
        "tolerance": {"u8": {"rtol": 0, "atol": 0}},
    }


def _arguments(signature: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By position: names are the function's own."""
    kinds = [kind for kind in signature.values() if kind != "constexpr"]
    check_count(len(kinds))
    if not any(isinstance(kind, str) and kind.startswith("*") for kind in kinds):
        raise StaysOwnError("takes no tensor")
    return {f"a{position}": _argument(kind) for position, kind in enumerate(kinds)}


def _argument(kind: Any) -> dict[str, Any]:
    if isinstance(kind, str) and kind.startswith("*"):
        return {"buffer": "u8", "extent": 1, "role": "out"}
    type_ = SCALARS.get(kind) if isinstance(kind, str) else None
    if type_ is None:
        raise StaysOwnError(f"has an argument of type {kind}, which cubind does not pass"[:256])
    return (
        {"scalar": type_, "from": "caller", "bench": 1} if type_ in _FLOATS else {"scalar": type_, "expr": 0}
    )
