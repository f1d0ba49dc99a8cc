"""The files of tuned configurations that vLLM, SGLang and projects like them read: an object from a size, as
text, to the values that a launch gets."""

from __future__ import annotations

import json
import math
import os
import pathlib
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from .. import _strict_json, _whole_file
from ..errors import InvalidArgumentError

Value = int | float | str | bool
Values = dict[str, Value]

MAX_BYTES = 64 << 20
# Of Triton's Config: the other values are of the kernel's parameters.
CONFIG_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
_VERSION = "triton_version"  # vLLM's files may say it, and vLLM leaves it out
_SIZE = re.compile(r"[1-9]\d{0,14}", re.ASCII)


def read_json(path: str | os.PathLike[str], *, infinity: bool = False) -> Any:
    """The strict JSON of a file. Raises InvalidArgumentError, and OSError for a file that cannot be read."""
    content = pathlib.Path(path).read_bytes()
    if len(content) > MAX_BYTES:
        refuse(path, f"{len(content)} bytes, at most {MAX_BYTES} are taken")
    try:
        return _strict_json.loads(content, infinity=infinity)
    except ValueError as error:
        refuse(path, f"not JSON: {error}")


def read(path: str | os.PathLike[str]) -> dict[int, Values]:
    """The rows by size, ascending. Raises InvalidArgumentError, which names the row, and OSError."""
    return rows_of(read_json(path), path)


def rows_of(document: Any, path: str | os.PathLike[str]) -> dict[int, Values]:
    """The same of the JSON that was read."""
    if not isinstance(document, dict):
        refuse(path, "not an object of rows by size")
    rows = {}
    for size, values in document.items():
        if size == _VERSION:
            continue
        if not _SIZE.fullmatch(size):
            refuse(f"{path} /{size[:64]}", "not a size: a positive integer")
        rows[int(size)] = values_of(values, f"{path} /{size}")
    return dict(sorted(rows.items()))


def values_of(values: Any, where: str) -> Values:
    """The values of one configuration: names, and numbers, truth values or texts."""
    if not isinstance(values, dict) or not values:
        refuse(where, "not an object of values by name")
    for name, value in values.items():
        if not name.isidentifier():
            refuse(f"{where}/{name[:64]}", "not a name of a parameter")
        if not isinstance(value, (bool, int, float, str)):
            refuse(f"{where}/{name}", "neither a number nor a truth value nor a text")
        if isinstance(value, float) and not math.isfinite(value):
            refuse(f"{where}/{name}", f"{value} is no number of JSON")
    return values


def write(path: str | os.PathLike[str], rows: Mapping[int, Mapping[str, Value]]) -> None:
    """Write the file as those projects do, whole or not at all. Raises OSError."""
    ordered = {str(size): dict(values) for size, values in sorted(rows.items())}
    write_json(path, ordered)


def write_json(path: str | os.PathLike[str], document: Any) -> None:
    """Write JSON, whole or not at all. Raises OSError."""
    _whole_file.write(path, json.dumps(document, indent=4, allow_nan=False) + "\n")


def refuse(where: str | os.PathLike[str], cause: str) -> NoReturn:
    raise InvalidArgumentError(cause, os.fspath(where))
