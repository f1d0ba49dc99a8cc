"""Parts of a kernel spec that do not depend on each other: sizes, values, macros, options, text."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any

from . import _limits
from .errors import InvalidArgumentError

_ANY = 1e300  # a tolerance that every number is within
_LINE = 110  # characters of a spec as a file


def sizes_of(given: Any) -> tuple[dict[str, int], list[Any]]:
    """The problem's dims, and what the axes of a grid divide: names of dims, or expressions of tunables."""
    if isinstance(given, Mapping):
        named = dict(given)
    elif isinstance(given, (list, tuple)):
        named = {f"size_{axis}": each for axis, each in zip("xyz", given)}
        if len(given) > 3:
            raise InvalidArgumentError("name more than three sizes: {...}", "problem_size")
    else:
        named = {"size": given}
    dims, axes = {}, []
    for name, value in named.items():
        is_expression = isinstance(value, str) or callable(value)
        axes.append(value if is_expression else name)
        if not is_expression:
            try:
                dims[name] = _limits.integer(operator.index(value), f"problem_size {name}")
            except TypeError:
                raise InvalidArgumentError(f"{value!r} is no size", f"problem_size {name}") from None
    return dims or {"calls": 1}, axes


def values_of(given: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Those of each tunable as Python's. Raises InvalidArgumentError."""
    found = {}
    for name, values in mapping_of(given, "tune_params").items():
        if isinstance(values, (str, int, float)) or not hasattr(values, "__iter__"):
            raise InvalidArgumentError(f"{values!r} is no list of values", f"tune_params {name}")
        found[name] = [value.item() if getattr(value, "shape", None) == () else value for value in values]
        for value in found[name]:
            is_finite = not isinstance(value, float) or math.isfinite(value)
            if not isinstance(value, (int, float, str)) or not is_finite:
                raise InvalidArgumentError(f"{value!r} is neither a number nor a text", f"tune_params {name}")
        if not found[name]:
            raise InvalidArgumentError("has no value", f"tune_params {name}")
    return found


def prelude(choices: Mapping[str, Sequence[Any]]) -> str:
    """Macros for the values that a spec numbers."""
    lines = []
    for name, values in choices.items():
        for index, value in enumerate(values):
            lines.append(f"#{'el' if index else ''}if cubind_{name} == {index}\n#define {name} {value}\n")
        lines.append("#endif\n")
    return "".join(lines) + ("#line 1\n" if lines else "")


def with_values(launch: Mapping[str, Any], values: Mapping[str, int]) -> dict[str, Any]:
    """A launch of one configuration."""

    def replaced(text: str) -> str:
        for name, value in values.items():
            text = re.sub(rf"\b{name}\b", str(value), text)
        return text

    entry: str = launch["entry"]
    for name, value in values.items():
        entry = entry.replace(f"{{{name}}}", str(value))
    found = {**launch, "entry": entry}
    for axes in ("grid", "block"):
        found[axes] = [replaced(axis) for axis in launch[axes]]
    if "shared_bytes" in launch:
        found["shared_bytes"] = replaced(launch["shared_bytes"])
    return found


def options_of(given: Sequence[str]) -> tuple[list[str], list[str]]:
    """NVRTC's options, and macros. It always optimizes, and names its options with two hyphens."""
    options, defines = [], []
    for option in given:
        if option.startswith("-D"):
            name, equals, value = option[2:].partition("=")
            defines.append(f"{name}={value if equals else 1}")
        elif not re.fullmatch(r"-O[0-3]", option):
            options.append(f"-{option}" if re.match(r"-[a-z]{2}", option) else option)
    return options, defines


def entry_of(reference: Any) -> str:
    """The kernel's name. Raises InvalidArgumentError."""
    if not isinstance(reference, Mapping) or "kernel_name" not in reference:
        raise InvalidArgumentError(
            'a dict is meant: {"kernel_name": ..., "grid": [...], "block": [...]}', "reference"
        )
    return str(reference["kernel_name"])


def printed(value: Any, indent: int = 0) -> str:
    """JSON; what fits stays on one line."""
    flat = json.dumps(value, allow_nan=False)
    if len(flat) + indent <= _LINE or not isinstance(value, (dict, list)):
        return flat
    inner = " " * (indent + 2)
    if isinstance(value, list):
        parts = [f"{inner}{printed(each, indent + 2)}" for each in value]
    else:
        parts = [f"{inner}{json.dumps(name)}: {printed(each, indent + 2)}" for name, each in value.items()]
    opened, closed = "[]" if isinstance(value, list) else "{}"
    return f"{opened}\n" + ",\n".join(parts) + f"\n{' ' * indent}{closed}"


def count_of(given: Any, where: str) -> int:
    """How many there are. Raises InvalidArgumentError for one that is alone."""
    if not hasattr(given, "__len__"):
        raise InvalidArgumentError(f"is a {type(given).__name__}: a list or a dict is meant", where)
    return len(given)


def bound(value: Any) -> float:
    if not isinstance(value, (int, float)) or not value >= 0:  # NaN is neither
        raise InvalidArgumentError(
            f"{value!r} is no bound: a number from 0 to math.inf is meant", "tolerance"
        )
    return min(value, _ANY)


def texts(given: Any, where: str) -> list[str]:
    """Several, or one alone. Raises InvalidArgumentError."""
    found = [given] if isinstance(given, str) else [*given] if hasattr(given, "__iter__") else [None]
    for each in found:
        if not isinstance(each, str):
            raise InvalidArgumentError(f"{given!r} is no list of texts", where)
    return found


def mapping_of(given: Any, where: str) -> Mapping[str, Any]:
    """Itself. Raises InvalidArgumentError."""
    if not isinstance(given, Mapping):
        raise InvalidArgumentError(f"is a {type(given).__name__}: a dict is meant", where)
    return given


def listed(given: Any) -> list[Any]:
    """A list, or one of one."""
    return list(given) if isinstance(given, (list, tuple)) else [given]
