"""Shape lists: the problems that tune() measures, each with its place for errors."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from .errors import InvalidArgumentError


@dataclasses.dataclass(frozen=True)
class Shape:
    """One problem. place: "shapes[3]", or "shapes.jsonl line 4"."""

    where: str
    kernel: str
    problem: dict[str, Any]


def read_shapes(
    shapes: Iterable[Mapping[str, Any]] | str | os.PathLike[str], kernel: str | None
) -> list[Shape]:
    """The given problems, or those of a .json, .jsonl or .csv file. kernel: of those that name none."""
    if isinstance(shapes, (str, os.PathLike)):
        placed = _read_file(pathlib.Path(shapes))
    elif isinstance(shapes, Mapping):
        raise InvalidArgumentError("is one problem: pass a list of problems, [{...}]", "shapes")
    else:
        placed = [(f"shapes[{index}]", shape) for index, shape in enumerate(shapes)]
    return [_shape(where, shape, kernel) for where, shape in placed]


def _shape(where: str, shape: Any, kernel: str | None) -> Shape:
    if not isinstance(shape, Mapping):
        raise InvalidArgumentError(f'{shape!r} is not a mapping like {{"N": 4096, "T": "bf16"}}', where)
    problem = dict(shape)
    name = problem.pop("kernel", kernel)
    if not name:
        raise InvalidArgumentError('has no "kernel": name it there, or for all problems by kernel=', where)
    return Shape(where, name, problem)


def _read_file(path: pathlib.Path) -> list[tuple[str, Any]]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".csv":
        rows = csv.DictReader(text.splitlines())
        return [(f"{path} line {rows.line_num}", _of_cells(row)) for row in rows]
    if path.suffix == ".jsonl":
        lines = [(f"{path} line {number}", line) for number, line in enumerate(text.splitlines(), 1)]
        return [(where, _parsed(line, where)) for where, line in lines if line.strip()]
    if path.suffix != ".json":
        raise InvalidArgumentError("a shape list ends in .json, .jsonl or .csv", str(path))
    listed = _parsed(text, str(path))
    if not isinstance(listed, dict) or not isinstance(listed.get("problems"), list):
        raise InvalidArgumentError('expected an object with "problems", a list', str(path))
    named = {"kernel": listed["kernel"]} if "kernel" in listed else {}
    return [
        (f"{path} /problems/{index}", {**named, **shape} if isinstance(shape, dict) else shape)
        for index, shape in enumerate(listed["problems"])
    ]


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidArgumentError(str(error), where) from None


def _of_cells(row: Mapping[str, str | None]) -> dict[str, Any]:
    """Integers, true and false as such, types as text. A cell too many is one without a name."""
    flags = {"true": True, "false": False}
    return {
        str(name): flags.get(str(cell), int(str(cell)) if str(cell).isdigit() else cell)
        for name, cell in row.items()
    }
