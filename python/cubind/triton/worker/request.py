"""What the worker is asked to compile, and what it refuses."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

# What an option may be. Others reach files (extern_libs, ir_override), flags of ptxas (ptx_options) or
# instrumentation, or only matter before there is TTIR.
OPTIONS: dict[str, type[int]] = {
    "num_warps": int,
    "num_stages": int,
    "num_ctas": int,
    "maxnreg": int,
    "ptx_version": int,
    "enable_fp_fusion": bool,
    "enable_reflect_ftz": bool,
    "launch_cooperative_grid": bool,
    "launch_pdl": bool,
}
MAX_TTIR_BYTES = 4 << 20

# Strings and comments of MLIR, to leave them out of a search.
_TEXT_OR_COMMENT = re.compile(rb'"(?:[^"\\\n]|\\.)*"|//[^\n]*')
_LOCATION = re.compile(rb"\bloc\s*\(")
_ARCHITECTURE = re.compile(r"sm_(\d{2,3})a?")


class RequestError(Exception):
    """The request is not for this worker: what is wrong, where, and what would be right."""

    def __init__(self, message: str) -> None:
        super().__init__(message[:1024])  # it may quote what was sent


@dataclasses.dataclass
class Request:
    """What to compile. architecture: the compute capability as Triton counts, 90 for sm_90."""

    ttir: bytes
    architecture: int
    options: dict[str, Any]


def read_request(header: dict[str, Any], ttir: bytes, triton: str, architectures: list[int]) -> Request:
    """The request of a message; raises RequestError."""
    unknown = sorted(header.keys() - {"architecture", "options", "triton"})
    if unknown:
        raise RequestError(f"{unknown[0]}: not a field of a request; they are architecture, options, triton")
    if header.get("triton") != triton:
        raise RequestError(f"triton: {header.get('triton')!r} is asked for, this worker has {triton!r}")
    if len(ttir) > MAX_TTIR_BYTES:
        raise RequestError(f"TTIR: {len(ttir)} bytes, at most {MAX_TTIR_BYTES} are taken")
    if _LOCATION.search(_TEXT_OR_COMMENT.sub(b"", ttir)):
        raise RequestError("TTIR: it has locations, which name files of a host; send it without")
    architecture = _architecture(header.get("architecture"), architectures)
    return Request(ttir, architecture, check_options(header.get("options", {})))


def _architecture(name: Any, known: list[int]) -> int:
    match = _ARCHITECTURE.fullmatch(name) if isinstance(name, str) else None
    if match is None or int(match.group(1)) not in known:
        names = ", ".join(f"sm_{number}" for number in known)
        raise RequestError(f"architecture: {name!r} is not known; known are {names}")
    return int(match.group(1))


def check_options(options: Any) -> dict[str, int | bool]:
    """The options, each of them allowed; raises RequestError."""
    if not isinstance(options, dict):
        raise RequestError("options: not an object")
    for name, value in options.items():
        kind = OPTIONS.get(name)
        if kind is None:
            raise RequestError(f"options/{name}: not allowed; allowed are {', '.join(OPTIONS)}")
        if isinstance(value, bool) != (kind is bool) or not isinstance(value, kind):
            raise RequestError(f"options/{name}: {value!r} is no value of type {kind.__name__}")
        if kind is int and not 1 <= value < 1 << 16:
            raise RequestError(f"options/{name}: {value} is not from 1 to {(1 << 16) - 1}")
    for name in ("num_warps", "num_ctas"):
        if (count := options.get(name, 1)) & (count - 1):
            raise RequestError(f"options/{name}: {count} is not a power of two")
    return options
