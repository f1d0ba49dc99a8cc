"""The strict reader of definitions: for the side that did not write them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from .. import _strict_json
from ..errors import InvalidArgumentError
from . import definition as d
from .worker.request import RequestError, check_options

_DIGEST = re.compile(r"[0-9a-f]{64}")
_SYMBOL = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
_ARCHITECTURE = re.compile(r"sm_\d{2,3}")
_TYPE = re.compile(r"(?:fp|bf|tf|[iu])\d\w{0,15}", re.ASCII)
_NOT_FINITE = ("nan", "inf", "-inf")
_INT64, _UINT64 = -(1 << 63), (1 << 64) - 1
_MAX_DEPTH = 4  # of lists in a plain value
_MAX_GRID = (2**31 - 1, 65535, 65535)

Parser = Callable[[Any, str], Any]


def read(text: bytes, texts: Mapping[str, bytes]) -> d.Definition:
    """The definition of its canonical JSON and its TTIR by digest.

    Raises InvalidArgumentError, whose field is the path of what is wrong: "configurations/3/grid/0".
    """
    if len(text) > d.MAX_JSON_BYTES:
        _refuse("", f"{len(text)} bytes of JSON, at most {d.MAX_JSON_BYTES} are taken")
    try:
        found = _strict_json.loads(text)
    except ValueError as error:
        _refuse("", f"not JSON: {error}")
    fields = _object(found, "", _DEFINITION)
    if fields.pop("format") != d.FORMAT:
        _refuse("format", f"not {d.FORMAT!r}, the only one that is known")
    result = d.Definition(**fields, texts=_texts(texts))
    _check_references(result)
    return result


def _refuse(place: str, cause: str) -> NoReturn:
    raise InvalidArgumentError(cause, place or "definition")


# ---- Parsers: of a value and its path ----


def _object(value: Any, place: str, parsers: Mapping[str, Parser]) -> dict[str, Any]:
    if not isinstance(value, dict):
        _refuse(place, "not an object")
    prefix = f"{place}/" if place else ""
    if unknown := sorted(value.keys() - parsers.keys()):
        _refuse(f"{prefix}{unknown[0][: d.MAX_NAME]}", f"not a field here; they are {', '.join(parsers)}")
    if missing := [name for name in parsers if name not in value]:
        _refuse(f"{prefix}{missing[0]}", "missing")
    return {name: parse(value[name], f"{prefix}{name}") for name, parse in parsers.items()}


def _integer(least: int, most: int) -> Parser:
    def parse(value: Any, place: str) -> int:
        if type(value) is not int or not least <= value <= most:
            _refuse(place, f"{_shown(value)} is not an integer from {least} to {most}")
        return value

    return parse


def _truth(value: Any, place: str) -> bool:
    if not isinstance(value, bool):
        _refuse(place, f"{_shown(value)} is neither true nor false")
    return value


def _text(pattern: re.Pattern[str] | None = None, most: int = d.MAX_NAME) -> Parser:
    def parse(value: Any, place: str) -> str:
        if not isinstance(value, str) or len(value) > most:
            _refuse(place, f"{_shown(value)} is not a text of at most {most} characters")
        if pattern is not None and not pattern.fullmatch(value):
            _refuse(place, f"{_shown(value)} does not have the form {pattern.pattern}")
        return value

    return parse


def _list(parse_item: Parser, most: int) -> Parser:
    def parse(value: Any, place: str) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) > most:
            _refuse(place, f"not a list of at most {most}")
        return tuple(parse_item(item, f"{place}/{index}") for index, item in enumerate(value))

    return parse


def _one_of(*choices: Any) -> Parser:
    def parse(value: Any, place: str) -> Any:
        if not any(type(value) is type(choice) and value == choice for choice in choices):
            _refuse(place, f"{_shown(value)} is none of {', '.join(map(repr, choices))}")
        return value

    return parse


def _plain(value: Any, place: str, depth: int = 0) -> d.Plain:
    if isinstance(value, str):
        return _text(most=d.MAX_TEXT)(value, place)
    if type(value) is int:
        return _integer(_INT64, _UINT64)(value, place)
    if isinstance(value, list) and depth < _MAX_DEPTH and len(value) <= d.MAX_ARGUMENTS:
        return [_plain(item, f"{place}/{index}", depth + 1) for index, item in enumerate(value)]
    if value is None or isinstance(value, (bool, float)):
        return value
    return _refuse(place, f"{_shown(value)} is no truth value, number, text or short list")


def _number(value: Any, place: str) -> int | float:
    if isinstance(value, str) and value in _NOT_FINITE:
        return float(value)
    if isinstance(value, float):
        return value
    return _integer(_INT64, _UINT64)(value, place)


def _values(value: Any, place: str) -> dict[str, d.Plain]:
    if not isinstance(value, dict) or len(value) > d.MAX_ARGUMENTS:
        _refuse(place, f"not an object of at most {d.MAX_ARGUMENTS} values")
    return {_text()(name, place): _plain(item, f"{place}/{name}") for name, item in value.items()}


def _options(value: Any, place: str) -> dict[str, int | bool]:
    try:
        return check_options(value)
    except RequestError as error:
        _refuse(place, str(error))


def _grid(value: Any, place: str) -> tuple[int, int, int]:
    if not isinstance(value, list) or len(value) != 3:
        _refuse(place, "not a list of three")
    x, y, z = (
        _integer(0, most)(size, f"{place}/{i}") for i, (size, most) in enumerate(zip(value, _MAX_GRID))
    )
    return x, y, z


def _key_part(value: Any, place: str) -> tuple[str, d.Plain]:
    if not isinstance(value, list) or len(value) != 2:
        _refuse(place, "not a name and a value")
    return _text()(value[0], f"{place}/0"), _plain(value[1], f"{place}/1")


def _argument(value: Any, place: str) -> d.Argument:
    kind = value.get("kind") if isinstance(value, dict) else None
    kinds = {
        "pointer": (d.Pointer, _POINTER),
        "scalar": (d.Scalar, _SCALAR),
        "constant": (d.Constant, _CONSTANT),
    }
    if not isinstance(kind, str) or kind not in kinds:
        _refuse(f"{place}/kind", f"{_shown(kind)} is none of {', '.join(kinds)}")
    made, parsers = kinds[kind]
    fields = _object(value, place, {"kind": _plain} | parsers)
    fields.pop("kind")
    return made(**fields)


def _contents(value: Any, place: str) -> d.Contents | None:
    if value is None:
        return None
    given = {"values": None} | value if isinstance(value, dict) else value
    found = d.Contents(**_object(given, place, _CONTENTS))
    if found.least > found.most:
        _refuse(place, f"the least element, {found.least}, is above the most, {found.most}")
    return found


def _element_values(value: Any, place: str) -> bytes | None:
    if value is None:
        return None
    text = _text(most=-(-d.MAX_VALUES_BYTES // 3) * 4)(value, place)
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return _refuse(place, "not in Base64")


def _configuration(value: Any, place: str) -> d.Configuration:
    found = d.Configuration(**_object(value, place, _CONFIGURATION))
    if bool(found.ttir) == bool(found.refused):
        _refuse(f"{place}/ttir", "either there is TTIR, or `refused` says why not")
    return found


_NAME = _text()
_SIZE = _integer(0, (1 << 63) - 1)
_ANY_INTEGER = _integer(_INT64, _UINT64)
_DIVISIBILITY = _one_of(1, 16)
_CONTENTS: dict[str, Parser] = {
    "least": _ANY_INTEGER,
    "most": _ANY_INTEGER,
    "ascending": _truth,
    "histogram": _list(_SIZE, d.MAX_BINS),
    "values": _element_values,
}
_POINTER: dict[str, Parser] = {
    "name": _NAME,
    "type": _text(_TYPE),
    "shape": _list(_SIZE, d.MAX_RANK),
    "strides": _list(_SIZE, d.MAX_RANK),
    "divisibility": _DIVISIBILITY,
    "role": _one_of(*d.ROLES),
    "storage": _integer(0, d.MAX_ARGUMENTS),
    "offset_bytes": _SIZE,
    "storage_bytes": _SIZE,
    "contents": _contents,
}
_SCALAR: dict[str, Parser] = {
    "name": _NAME,
    "type": _text(_TYPE),
    "value": _number,
    "divisibility": _DIVISIBILITY,
}
_CONSTANT: dict[str, Parser] = {"name": _NAME, "value": _plain}
_CONFIGURATION: dict[str, Parser] = {
    "values": _values,
    "options": _options,
    "ttir": _text(re.compile(f"(?:{_DIGEST.pattern})?")),
    "grid": _grid,
    "refused": _text(most=d.MAX_TEXT),
}
_DEFINITION: dict[str, Parser] = {
    "format": _NAME,
    "name": _text(_SYMBOL),
    "function": _NAME,
    "architecture": _text(_ARCHITECTURE),
    "triton": _NAME,
    "ptxas": _NAME,
    "key": _list(_key_part, d.MAX_ARGUMENTS),
    "arguments": _list(_argument, d.MAX_ARGUMENTS),
    "configurations": _list(_configuration, d.MAX_CONFIGURATIONS),
    "reset_to_zero": _list(_NAME, d.MAX_ARGUMENTS),
    "restore_value": _list(_NAME, d.MAX_ARGUMENTS),
    "graph_launch": _truth,
}


# ---- What belongs together ----


def _texts(texts: Mapping[str, bytes]) -> dict[str, bytes]:
    total = 0
    for name, text in texts.items():
        place = f"texts/{name[: d.MAX_NAME]}"
        total += len(text)
        if len(text) > d.MAX_TTIR_BYTES or total > d.MAX_ALL_TTIR_BYTES:
            _refuse(place, f"more than {d.MAX_TTIR_BYTES} bytes, or {d.MAX_ALL_TTIR_BYTES} of all together")
        if d.digest(text) != name:
            _refuse(place, "its digest is another")
    return dict(texts)


def _check_references(found: d.Definition) -> None:
    used = {configuration.ttir for configuration in found.configurations} - {""}
    if not used:
        _refuse("configurations", "none can be compiled")
    if missing := sorted(used - found.texts.keys()):
        _refuse(f"texts/{missing[0]}", "missing")
    if unused := sorted(found.texts.keys() - used):
        _refuse(f"texts/{unused[0]}", "no configuration has it")
    names = [argument.name for argument in found.arguments]
    if len(set(names)) < len(names):
        _refuse("arguments", "two have the same name")
    pointers = {argument.name for argument in found.arguments if isinstance(argument, d.Pointer)}
    for field in ("reset_to_zero", "restore_value"):
        for index, name in enumerate(getattr(found, field)):
            if name not in pointers:
                _refuse(f"{field}/{index}", f"{name!r} is no argument that is a tensor")
    for index, argument in enumerate(found.arguments):
        if isinstance(argument, d.Pointer):
            _check_extent(argument, f"arguments/{index}")


def _check_extent(pointer: d.Pointer, place: str) -> None:
    if len(pointer.shape) != len(pointer.strides):
        _refuse(
            f"{place}/strides", f"{len(pointer.strides)} of them, the shape has {len(pointer.shape)} dims"
        )
    if pointer.offset_bytes + d.extent_bytes(pointer) > pointer.storage_bytes:
        _refuse(f"{place}/storage_bytes", f"the tensor reaches beyond {pointer.storage_bytes} bytes")
    if pointer.values is not None and len(pointer.values) != (extent := d.extent_bytes(pointer)):
        _refuse(f"{place}/contents/values", f"{len(pointer.values)} bytes, the tensor has {extent}")


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 64 else f"{shown[:61]}..."
