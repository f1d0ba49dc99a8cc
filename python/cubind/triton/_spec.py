"""From a definition to the spec that the daemon keeps: tuner/spec/spec_triton.cpp reads it.

The spec says less than the definition. Where it cannot say what a measurement needs, the kernel stays
Triton's own.
"""

from __future__ import annotations

import array
import dataclasses
import json
import math
import re
from typing import Any

from .. import arrays
from .._defining import MAX_MESSAGE_BYTES, TOLERANCES
from .._host_arrays import HostArray
from . import definition as d
from ._own import StaysOwnError

# The limits of tuner/spec/spec_fields.hpp, schemas/limits.hpp and server/convert/limits.hpp.
_MAX_CONFIGURATIONS = 256
_MAX_ARGUMENTS = 64
_MAX_DIMS = 16
_MAX_DIM = 1 << 48
_MAX_NAME = 64
_MAX_SPEC_BYTES = 1 << 20
_MAX_TEXT_BYTES = MAX_MESSAGE_BYTES - 1024  # of TTIR, in a message of its own
_INT64 = range(-(1 << 63), 1 << 63)
_EXACT = 1 << 53  # doubles hold every integer up to it

_NAME_DIGITS = 20
TUNABLE = "CONFIG"
_OF_ONE_CALL = {"extent", "shape", "align", "fill", "expr", "from", "bench"}
_ADDRESSES = (
    b"tt.int_to_ptr",
    b"tt.ptr<!tt.ptr<",
)  # in TTIR: pointers made of what is in a tensor or a number
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_RESERVED = {"cdiv", "min", "max", "abs", "sizeof", "device", "artifact", "scenario", TUNABLE}

# Triton's types of elements, in the words of specs: unsigned integers are given the bits of signed ones.
_ELEMENTS = {
    "fp64": "f64",
    "fp32": "f32",
    "fp16": "f16",
    "bf16": "bf16",
    "fp8e4nv": "e4m3",
    "fp8e5": "e5m2",
    "i64": "i64",
    "u64": "i64",
    "i32": "i32",
    "u32": "i32",
    "i8": "i8",
    "u8": "u8",
    "i1": "u8",
    "u1": "u8",
}
SCALARS = {name: name for name in ("i64", "u64", "i32", "u32", "i16", "u16", "i8", "u8")} | {
    "i1": "bool",
    "u1": "bool",
    "fp64": "f64",
    "fp32": "f32",
    "fp16": "f16",
    "bf16": "bf16",
}
# The elements of a tensor: their type for Python's arrays.
_VALUES = {"i64": "q", "i32": "i", "i8": "b", "u8": "B"}
# Outputs that may hold a summand for each block of a configuration: the caller adds them up.
_SUMMED = ("f64", "f32", "f16", "bf16")
_MAX_SUMMED = 1 << 22  # elements
_MAX_AXES = 8


@dataclasses.dataclass(frozen=True)
class Spec:
    """A spec: its name, the entry's symbol, the positions of its configurations in the definition, the
    problem that it is asked for, its JSON, and its files by path."""

    name: str
    entry: str
    indices: tuple[int, ...]
    problem: dict[str, int]
    json: bytes
    files: dict[str, bytes]


def spec_of(definition: d.Definition, with_values: bool = False) -> Spec:
    """The spec. with_values: of small integer tensors it has the elements, so that it is another kernel, for
    whatever elements. Raises StaysOwnError for a call that a spec cannot describe."""
    key = [[name, _key_value(value)] for name, value in definition.key]
    if not with_values:
        definition = _without_values(definition)
    elif has_values(definition.arguments):
        key.append(["contents", "given"])
    code = code_of(definition.triton, definition.ptxas, definition.architecture, definition.name, key)
    arguments = _arguments(definition)
    fields = {
        "description": f"{definition.function}, defined by cubind.triton",
        "configurations": _configurations(definition),
        "arguments": arguments,
        "tolerance": _tolerances(definition, arguments),
    }
    spec = make_spec(code, problem_of(definition.key), fields, definition.texts)
    return dataclasses.replace(spec, files=spec.files | _data_files(definition, arguments))


def has_values(arguments: tuple[d.Argument, ...]) -> bool:
    """Whether the elements of a tensor are among the arguments."""
    return any(isinstance(each, d.Pointer) and each.values is not None for each in arguments)


def make_spec(
    code: dict[str, Any], problem: dict[str, int], fields: dict[str, Any], texts: dict[str, bytes]
) -> Spec:
    """The spec of its code, its other sections and the TTIR by digest. Raises StaysOwnError."""
    name = _name(code, fields)
    configurations = fields["configurations"]
    dims = dict.fromkeys(problem, "of Triton's key")
    fields = {"name": name, "language": "triton", "triton": code, "problem": {"dims": dims}, **fields}
    text = json.dumps(fields, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()
    if len(text) > _MAX_SPEC_BYTES:
        raise StaysOwnError(f"has a definition of {len(text)} bytes, at most {_MAX_SPEC_BYTES} are taken")
    largest = max(map(len, texts.values()))
    if largest > _MAX_TEXT_BYTES:
        raise StaysOwnError(f"has {largest} bytes of TTIR")
    indices = tuple(one["index"] for one in configurations)
    files = {f"{digest}.ttir": ttir for digest, ttir in texts.items()}
    return Spec(name, code["entry"], indices, problem, text, files)


# ---- What is compiled ----


def code_of(triton: str, ptxas: str, architecture: str, entry: str, key: list[Any]) -> dict[str, Any]:
    """What all configurations share. key: names and values. Raises StaysOwnError."""
    if not IDENTIFIER.fullmatch(entry):
        raise StaysOwnError(f"has the symbol {entry}, which is no name of C")
    return {
        "version": triton,
        "ptxas": ptxas,
        "architecture": architecture,
        "entry": entry,
        "key": key,
        # Scratch memory, global and of Triton's profiler: of the latter 3.4 knows nothing.
        "trailing_pointers": 1 if triton.startswith("3.4.") else 2,
    }


def _key_value(value: d.Plain) -> d.Plain:
    """The daemon reads no fractions and no lists: their text stands for them."""
    if isinstance(value, str) or value is None or (isinstance(value, int) and value in _INT64):
        return value
    return d.canonical(d.plain_number(value) if isinstance(value, float) else value).decode()


def _configurations(definition: d.Definition) -> list[dict[str, Any]]:
    found = [
        {
            "index": index,
            "ttir": configuration.ttir,
            "options": configuration.options,
            "grid": list(configuration.grid),
            "values": configuration.values,
        }
        for index, configuration in enumerate(definition.configurations)
        if configuration.ttir
    ]
    if not 2 <= len(found) <= _MAX_CONFIGURATIONS:
        raise StaysOwnError(
            f"has {len(found)} configurations, cubind chooses among 2 to {_MAX_CONFIGURATIONS}"
        )
    if any(mark in text for text in definition.texts.values() for mark in _ADDRESSES):
        raise StaysOwnError("takes numbers for addresses, which another process does not have")
    return found


def _name(code: dict[str, Any], fields: dict[str, Any]) -> str:
    """The entry and a digest of what is compiled, of the key and of how results are compared."""
    identity = {
        "format": d.FORMAT,
        "architecture": code["architecture"],
        "triton": code["version"],
        "ptxas": code["ptxas"],
        "key": code["key"],
        "trailing_pointers": code["trailing_pointers"],
        "configurations": [
            {name: one[name] for name in ("index", "options", "ttir")} for one in fields["configurations"]
        ],
        "arguments": [
            [name, {field: value for field, value in argument.items() if field not in _OF_ONE_CALL}]
            for name, argument in fields["arguments"].items()
        ],
        "tolerance": _bounds(fields["tolerance"]),
    }
    digits = d.digest(d.canonical(identity))[:_NAME_DIGITS]
    return f"{code['entry'][: _MAX_NAME - _NAME_DIGITS - 1]}_{digits}"


def _bounds(tolerance: dict[str, Any]) -> list[list[Any]]:
    """Type, output (or none), and both bounds in billionths."""
    by_output = [("", {name: each for name, each in tolerance.items() if name != "outputs"})]
    by_output += tolerance.get("outputs", {}).items()
    return [
        [type_, output, round(one["rtol"] * 1e9), round(one["atol"] * 1e9)]
        for output, by_type in by_output
        for type_, one in by_type.items()
    ]


def problem_of(key: tuple[tuple[str, d.Plain], ...]) -> dict[str, int]:
    """The integers of the key, for those who read tables: the name has all of the key."""
    dims = {
        name: value
        for name, value in key
        if type(value) is int
        and 1 <= value <= _MAX_DIM
        and name not in _RESERVED
        and len(name) <= _MAX_NAME
        and IDENTIFIER.fullmatch(name)
    }
    return dict(list(dims.items())[:_MAX_DIMS]) or {"calls": 1}


# ---- What it is measured with ----


def _arguments(definition: d.Definition) -> dict[str, dict[str, Any]]:
    passed = [argument for argument in definition.arguments if not isinstance(argument, d.Constant)]
    pointers = [argument for argument in passed if isinstance(argument, d.Pointer)]
    check_count(len(passed))
    if all(pointer.role == d.IN for pointer in pointers):
        raise StaysOwnError("writes no tensor, so there is nothing to verify")
    _check_apart(pointers)
    found = {}
    for argument in passed:
        if len(argument.name) > _MAX_NAME or not IDENTIFIER.fullmatch(argument.name):
            raise StaysOwnError(f"has an argument {argument.name[:_MAX_NAME]}, which is no name of C")
        is_pointer = isinstance(argument, d.Pointer)
        found[argument.name] = _buffer(argument, definition) if is_pointer else _scalar(argument)
    return found


def check_count(arguments: int) -> None:
    """Raises StaysOwnError for more arguments than a spec has."""
    if arguments > _MAX_ARGUMENTS:
        raise StaysOwnError(f"has {arguments} arguments, at most {_MAX_ARGUMENTS} are taken")


def _check_apart(pointers: list[d.Pointer]) -> None:
    """A measurement gives every tensor memory of its own."""
    for index, one in enumerate(pointers):
        for other in pointers[index + 1 :]:
            if one.storage == other.storage and not one.role == other.role == d.IN and _overlap(one, other):
                raise StaysOwnError(f"writes memory that {one.name} and {other.name} share")


def _overlap(one: d.Pointer, other: d.Pointer) -> bool:
    return one.offset_bytes < other.offset_bytes + d.extent_bytes(
        other
    ) and other.offset_bytes < one.offset_bytes + d.extent_bytes(one)


def _buffer(pointer: d.Pointer, definition: d.Definition) -> dict[str, Any]:
    if pointer.type not in _ELEMENTS:
        raise StaysOwnError(f"has a tensor {pointer.name} of {pointer.type}, which cubind cannot make")
    type_ = _ELEMENTS[pointer.type]
    compiled = [(index, each) for index, each in enumerate(definition.configurations) if each.ttir]
    clearing = [index for index, each in compiled if pointer.name in each.cleared]
    is_reset = pointer.name in definition.reset_to_zero and pointer.role != d.IN
    role = "zero" if clearing or is_reset else pointer.role
    found: dict[str, Any] = {
        "buffer": type_,
        "extent": d.extent_bytes(pointer) // d.element_bytes(pointer.type),
        "role": role,
    }
    if clearing:  # Triton counts its time
        found["timed"] = clearing if len(clearing) < len(compiled) else True
    if role == d.OUT:
        found["partial"] = "sums" if type_ in _SUMMED else True  # kernels may, and nothing says so
        axes = _axes(pointer) if type_ in _SUMMED else []
        if axes:
            del found["extent"]
            found["shape"] = axes
    if pointer.divisibility > 1:
        found["align"] = pointer.divisibility
    if role in (d.IN, d.INOUT) and type_ in _VALUES:
        exact = pointer.values is not None
        found["fill"] = _exact_fill(pointer, type_) if exact else _fill(pointer, type_)
    return found


def _axes(pointer: d.Pointer) -> list[int]:
    """Two or more that are longer than 1, outermost first, of a tensor without gaps; else none."""
    axes = [(size, stride) for size, stride in zip(pointer.shape, pointer.strides) if size != 1]
    sizes = [size for size, _ in axes]
    strides = [math.prod(sizes[position:]) for position in range(1, len(sizes) + 1)]
    fits = 2 <= len(axes) <= _MAX_AXES and 0 < math.prod(sizes) <= _MAX_SUMMED
    return sizes if fits and strides == [stride for _, stride in axes] else []


def _fill(pointer: d.Pointer, type_: str) -> d.Plain:
    """Integers like those of the call, as far as fills go: of the histogram only a flat one counts. A fill
    goes over all memory from the first element to the last, also between them."""
    contents = pointer.contents
    if contents is None:
        if 0 in pointer.shape:
            return {"constant": 0}
        raise StaysOwnError(f"has a tensor {pointer.name} of {pointer.type}, of which nothing is known")
    least, most, elements = contents.least, contents.most, math.prod(pointer.shape)
    is_dense = d.extent_bytes(pointer) == elements * d.element_bytes(pointer.type)
    if least < 0 <= most and type_ in ("i64", "i32"):
        least = 0  # a mark among indices: those between it and 0 may be none
    least, most = (min(max(end, -_EXACT), _EXACT) for end in (least, most))
    if least == most:
        return {"constant": least}
    if is_dense and most - least == elements - 1 and contents.ascending:
        return {"iota": {"start": least, "step": 1}}
    if least == 0 and contents.ascending:
        return {"offsets": {"total": most}}
    is_flat = max(contents.histogram) - min(contents.histogram) <= 1
    if is_dense and least == 0 and most == elements - 1 and is_flat:
        return "permutation"
    return {"uniform": {"low": least, "high": most + 1}}


def _exact_fill(pointer: d.Pointer, type_: str) -> d.Plain:
    """The integers of the call: by a rule that says the same as all of them, or in a file."""
    elements = array.array(_VALUES[type_], pointer.values or b"")
    first, last = elements[0], elements[-1]
    if abs(first) <= _EXACT and elements.count(first) == len(elements):
        return {"constant": first}
    is_range = max(-first, last) <= _EXACT and last - first == len(elements) - 1
    if is_range and elements == array.array(_VALUES[type_], range(first, last + 1)):
        return {"iota": {"start": first, "step": 1}}
    return _in_file(pointer)


def _data_files(definition: d.Definition, arguments: dict[str, dict[str, Any]]) -> dict[str, bytes]:
    """The files that fills name."""
    found = {}
    for pointer in definition.arguments:
        if isinstance(pointer, d.Pointer) and pointer.values is not None:
            type_, fill = arguments[pointer.name]["buffer"], arguments[pointer.name].get("fill")
            if fill == (named := _in_file(pointer)):
                shape = (len(pointer.values) // arrays.ITEM_BYTES[type_],)
                found[named["npy"]] = HostArray.of(type_, shape, memoryview(pointer.values)).npy()
    return found


def _in_file(pointer: d.Pointer) -> dict[str, str]:
    return {"npy": f"{pointer.name}.npy"}


def _without_values(definition: d.Definition) -> d.Definition:
    def without(argument: d.Argument) -> d.Argument:
        if not isinstance(argument, d.Pointer) or argument.contents is None:
            return argument
        return dataclasses.replace(argument, contents=dataclasses.replace(argument.contents, values=None))

    return dataclasses.replace(definition, arguments=tuple(map(without, definition.arguments)))


def _scalar(scalar: d.Scalar) -> dict[str, Any]:
    type_ = SCALARS.get(scalar.type)
    if type_ is None:
        raise StaysOwnError(f"has an argument {scalar.name} of {scalar.type}, which cubind does not pass")
    if isinstance(scalar.value, float):
        if not math.isfinite(scalar.value):
            return {"scalar": type_, "from": "caller", "exactly": str(scalar.value)}
        return {"scalar": type_, "from": "caller", "bench": scalar.value}
    if scalar.value not in _INT64:
        raise StaysOwnError(f"has {scalar.value} as its argument {scalar.name}")
    return {"scalar": type_, "expr": scalar.value}


def _tolerances(definition: d.Definition, arguments: dict[str, dict[str, Any]]) -> dict[str, Any]:
    written = [
        argument
        for argument in definition.arguments
        if isinstance(argument, d.Pointer) and arguments[argument.name]["role"] != d.IN
    ]
    found: dict[str, Any] = {}
    for pointer in written:
        type_ = arguments[pointer.name]["buffer"]
        relative, absolute = TOLERANCES.get(type_, (0, 0))
        found[type_] = {"rtol": relative, "atol": absolute}
    truths = [pointer.name for pointer in written if pointer.type in ("i1", "u1")]
    if truths:
        found["outputs"] = {name: {"u8": {"rtol": 0, "atol": 0}} for name in truths}
    return found
