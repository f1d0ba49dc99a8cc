"""What the daemon and its agents must know of one call of an autotuned Triton kernel: data, no Python.

A definition holds texts of Triton's IR (TTIR) by their SHA-256, shapes, strides and values of integers. Of
what is in an integer tensor it has the range and a histogram, and of a small one the elements, which go into
a spec only where they may be sent; of any other tensor nothing.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from typing import Any

FORMAT = "cubind.triton/2"

MAX_TTIR_BYTES = 4 << 20  # of one configuration: 78 MB took Triton 6.5 GB
MAX_ALL_TTIR_BYTES = 64 << 20
MAX_CONFIGURATIONS = 1024
MAX_NAME = 256  # characters
MAX_TEXT = 4096
# Of the elements of a tensor. A daemon holds 256 MiB of definitions, and messages of 4 MiB bring them; tables
# of a mixture of experts take 300 KB for 8,192 tokens with 8 experts each.
MAX_VALUES_BYTES = 512 << 10

IN, OUT, INOUT = "in", "out", "inout"

_BITS = re.compile(r"\d+")

# A value that JSON has: None, a truth value, a number, a text or a list of these.
Plain = Any


@dataclasses.dataclass(frozen=True)
class Contents:
    """What is known of an integer tensor's elements: enough to draw others like them.

    histogram: of at most a million of them, over bins of equal width from `least` to `most`. values: all of
    them in memory, of a small contiguous tensor.
    """

    least: int
    most: int
    ascending: bool
    histogram: tuple[int, ...]
    values: bytes | None = dataclasses.field(default=None, repr=False)


@dataclasses.dataclass(frozen=True)
class Pointer:
    """An argument that is a tensor.

    type: of an element as Triton spells it, "bf16". shape, strides: in elements. divisibility: what the
    address, in bytes, is divisible by as far as the kernel was specialized for it, 16 or 1. storage: two
    arguments with the same number share memory; this one begins at offset_bytes of storage_bytes there.
    """

    name: str
    type: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    divisibility: int
    role: str
    storage: int
    offset_bytes: int
    storage_bytes: int
    contents: Contents | None = None

    @property
    def values(self) -> bytes | None:
        return self.contents.values if self.contents is not None else None


@dataclasses.dataclass(frozen=True)
class Scalar:
    """An argument that is a number. type: "i32", "fp32". divisibility: of its value, 16 or 1, as above."""

    name: str
    type: str
    value: int | float
    divisibility: int


@dataclasses.dataclass(frozen=True)
class Constant:
    """An argument that is compiled in: None, or a number that the kernel was specialized for. A launch does
    not pass it. Constants that a configuration sets are the configuration's values."""

    name: str
    value: Plain


Argument = Pointer | Scalar | Constant


@dataclasses.dataclass(frozen=True)
class Configuration:
    """One way to compile and launch the kernel.

    values: what the configuration sets, for those who read it. ttir: the digest of its TTIR; "" if Triton
    makes none, and `refused` says why. options: of the compile behind TTIR. grid: of this call. cleared:
    tensors that its pre_hook sets to zero before each run.
    """

    values: dict[str, Plain]
    options: dict[str, int | bool]
    ttir: str
    grid: tuple[int, int, int]
    refused: str = ""
    cleared: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class Definition:
    """One call of a kernel, and all configurations that may answer it.

    name: the entry's symbol. function: the Python function, a label. architecture: "sm_90". key: what Triton
    tunes separately for, names and values. texts: the TTIR by digest.
    """

    name: str
    function: str
    architecture: str
    triton: str
    ptxas: str
    key: tuple[tuple[str, Plain], ...]
    arguments: tuple[Argument, ...]
    configurations: tuple[Configuration, ...]
    reset_to_zero: tuple[str, ...] = ()
    texts: dict[str, bytes] = dataclasses.field(default_factory=dict, compare=False, repr=False)


def arguments_digest(arguments: tuple[Argument, ...]) -> str:
    """What a call passes: sizes, types and numbers. Not the elements of tensors, since a digest of few gives
    them away."""
    return digest(canonical([_json_of_argument(argument) for argument in arguments]))


def not_finite(arguments: tuple[Argument, ...]) -> list[tuple[str, str]]:
    """The numbers that are infinite or NaN, which are part of what a kernel is: names and values."""
    return [
        (each.name, str(each.value))
        for each in arguments
        if isinstance(each, Scalar) and not math.isfinite(each.value)
    ]


def canonical(value: Plain) -> bytes:
    """JSON with sorted names, no spaces and ASCII alone."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.encode()


def digest(content: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def element_bytes(type_: str) -> int:
    """The size of an element of Triton's type: 2 for "bf16", 1 for "fp8e5" and "i1"."""
    bits = int(_BITS.findall(type_)[0])
    return max(8, bits) // 8


def extent_bytes(pointer: Pointer) -> int:
    """From the first to the end of the last byte of a tensor."""
    if 0 in pointer.shape:
        return 0
    last = sum((size - 1) * stride for size, stride in zip(pointer.shape, pointer.strides))
    return (last + 1) * element_bytes(pointer.type)


def plain_number(value: float) -> Plain:
    """The number, or its name where JSON has none: "nan", "inf", "-inf"."""
    return value if math.isfinite(value) else str(value)


def _json_of_argument(argument: Argument) -> Plain:
    found = {"kind": type(argument).__name__.lower()} | _json_of(argument)
    if contents := found.get("contents"):
        del contents["values"]
    return found


def _json_of(value: Any) -> Plain:
    if dataclasses.is_dataclass(value):
        return {field.name: _json_of(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, (tuple, list)):
        return [_json_of(item) for item in value]
    return plain_number(value) if isinstance(value, float) else value
