"""From what a caller of tune_kernel() gives to a kernel spec with its files."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ._cuda_source import read_source
from ._expressions import Condition, cdiv, condition, expression, run
from ._host_arrays import HostArray
from ._interface import Interface
from ._kernel_answers import Answers, tolerance_of
from ._kernel_arguments import Arguments
from ._spec_parts import (
    listed,
    mapping_of,
    options_of,
    prelude,
    printed,
    sizes_of,
    texts,
    values_of,
)
from .errors import InvalidArgumentError

# Of the spec and the sources: the numbers of the parameters through which the kernel writes with its default
# configuration; None: unknown.
Written = Callable[[dict[str, Any], Mapping[str, bytes], Mapping[str, int]], "Iterable[int] | None"]

_BLOCK_SIZE_NAMES = ("block_size_x", "block_size_y", "block_size_z")
_MAX_THREADS = 1024
_MOST_TRIED = 1_000_000  # combinations, for one that meets the restrictions
_MAX_NAME = 64
_NAME_DIGITS = 12
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclasses.dataclass(frozen=True)
class Definition:
    """name: the kernel's, with a digest of everything else. stem: the name without it. files: the sources.
    arrays: by the paths of their files. choices: the values that the spec numbers, by the tunable's name.
    notes: what was assumed, a line each."""

    name: str
    stem: str
    spec: dict[str, Any]
    files: dict[str, bytes]
    arrays: dict[str, HostArray]
    problem: dict[str, int]
    choices: dict[str, list[Any]]
    notes: tuple[str, ...]

    def json(self) -> bytes:
        return printed(self.spec).encode() + b"\n"

    def interface(self) -> Interface:
        arguments = self.spec["arguments"].items()
        buffers = {name: each["buffer"] for name, each in arguments if "buffer" in each}
        return Interface(dims=tuple(self.problem), types=(), flags=(), buffer_types=buffers, shapes={})

    def named(self, name: str) -> Definition:
        """The same kernel under another name. Raises InvalidArgumentError."""
        if not _IDENTIFIER.fullmatch(name) or len(name) > _MAX_NAME:
            raise InvalidArgumentError(
                f'"{name}" is no name: letters, digits and _, at most {_MAX_NAME}', "name"
            )
        return dataclasses.replace(self, name=name, stem=name, spec={**self.spec, "name": name})

    def values(self, configuration: Mapping[str, int]) -> dict[str, Any]:
        """A configuration in the caller's values."""
        return {
            name: self.choices[name][value] if name in self.choices else value
            for name, value in configuration.items()
        }


def define(asked: types.SimpleNamespace, written: Written) -> Definition:
    """asked: the arguments of tune_kernel() by their names. Raises InvalidArgumentError with the name of the
    parameter at fault, OSError for a source's file."""
    return _Definer(asked, written).define()


class _Definer:
    def __init__(self, asked: types.SimpleNamespace, written: Written) -> None:
        for where in ("writes", "block_size_names", "compiler_options"):
            if (given := getattr(asked, where)) is not None:
                setattr(asked, where, texts(given, where))
        self._asked = asked
        self._written = written
        if not isinstance(asked.kernel_name, str):
            raise InvalidArgumentError(
                f"is a {type(asked.kernel_name).__name__}: a text is meant", "kernel_name"
            )
        self._stem = asked.kernel_name.partition("<")[0].strip().rpartition("::")[2]
        self._source = read_source(asked.kernel_source, self._stem, "kernel_source")
        self._problem, self._sizes = sizes_of(asked.problem_size)
        self._values = values_of(asked.tune_params)
        for where, names in (("problem_size", self._problem), ("tune_params", self._values)):
            for name in names:
                if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
                    raise InvalidArgumentError(f'"{name}" is no name: letters, digits and _', where)
        self._choices = {
            name: values
            for name, values in self._values.items()
            if not all(isinstance(value, int) for value in values)
        }
        self._domains: dict[str, Sequence[Any]] = {
            **self._values,
            **{name: [value] for name, value in self._problem.items()},
        }
        self._restrictions = self._read_restrictions()

    def define(self) -> Definition:
        asked = self._asked
        options, defines = options_of(asked.compiler_options)
        given = Arguments(asked, self._stem, self._source.parameters(asked.kernel_name, "kernel_name"))
        block = [self._expression(axis, "block") for axis in self._block_axes()]
        launch: dict[str, Any] = {"entry": asked.kernel_name, "arguments": given.names()}
        launch |= {"grid": self._grid(), "block": block}
        if (shared := self._expression(asked.shared_bytes, "shared_bytes")) != "0":
            launch["shared_bytes"] = shared
        default = self._default()
        files = {path: text.encode() for path, text in self._source.files.items()}
        files[self._source.path] = (prelude(self._choices) + self._source.text).encode()
        spec: dict[str, Any] = {
            "description": "made by cubind.tune_kernel()",
            "source": self._source.path,
            "problem": {"dims": dict.fromkeys(self._problem, "of the tuned problem")},
            "tunables": {name: self._numbers(name) for name in self._values},
            # Arrays and integers are those of one problem.
            "constraints": [f"{name} == {value}" for name, value in self._problem.items()]
            + [expression(each, self._domains, where) for where, each in self._restrictions],
            "default": [default],
            "arguments": given.described,
            "launches": [launch],
            "defines": [*defines, *(f"{_macro(name, self._choices)}={{{name}}}" for name in self._values)],
        }
        if options:
            spec["options"] = options
        self._find_written(given, spec, files)
        answers = Answers(asked, self._stem, given)
        macros = [*defines, *(f"{_macro(name, self._choices)}={value}" for name, value in default.items())]
        text = "".join(f"#define {each.replace('=', ' ', 1)}\n" for each in macros) + prelude(self._choices)
        spec["reference"] = answers.reference(self._source, launch, default, text, self._expression)
        spec["tolerance"] = tolerance_of(asked.tolerance, given)
        files |= answers.files
        name = self._name(spec, files, given.arrays)
        notes = (given.told(), *answers.notes)
        return Definition(
            name, self._stem, {"name": name, **spec}, files, given.arrays, self._problem, self._choices, notes
        )

    def _name(
        self, spec: Mapping[str, Any], files: Mapping[str, bytes], arrays: Mapping[str, HostArray]
    ) -> str:
        """Of everything that the daemon is given, so that its results are those of this kernel alone."""
        digests = {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
        shapes = [[path, each.shape, each.digest] for path, each in arrays.items()]
        text = json.dumps([spec, digests, shapes], sort_keys=True, allow_nan=False)
        digits = hashlib.sha256(text.encode()).hexdigest()[:_NAME_DIGITS]
        return f"{self._stem[: _MAX_NAME - _NAME_DIGITS - 1]}_{digits}"

    def _find_written(self, given: Arguments, spec: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
        """Where several arrays may be written, two combinations are looked at, since macros may choose."""
        if len(given.unsure) < 2:
            return
        rotated = {name: [*values[1:], *values[:1]] for name, values in self._values.items()}
        found: set[int] = set()
        for values in (spec["default"][0], self._first_valid(rotated)):
            tried = {**spec, "name": self._stem, "default": [values], "reference": "default"}
            tried["arguments"] = given.without_contents()
            tried["tolerance"] = tolerance_of(self._asked.tolerance, given)
            written = self._written(tried, files, self._problem)
            if not written:
                return
            found.update(written)
        given.narrow(found)

    # ---- Values ----

    def _numbers(self, name: str) -> list[int]:
        values = self._values[name]
        return list(range(len(values))) if name in self._choices else [int(value) for value in values]

    def _expression(self, given: Any, where: str) -> str:
        made = condition(given, [*self._domains], where)
        return expression(made, self._domains, where, True, given if isinstance(given, str) else "")

    def _read_restrictions(self) -> list[tuple[str, Condition]]:
        given = self._asked.restrictions
        if isinstance(given, (list, tuple)):
            placed = {f"restrictions[{index}]": each for index, each in enumerate(given)}
        else:
            placed = {} if given is None else {"restrictions": given}
        return [(where, condition(each, [*self._domains], where)) for where, each in placed.items()]

    def _default(self) -> dict[str, int]:
        """The caller's, or the first combination that is valid."""
        if self._asked.default is not None:
            given = mapping_of(self._asked.default, "default")
            return {name: self._number(name, value) for name, value in given.items()}
        return self._first_valid(self._values)

    def _first_valid(self, values: Mapping[str, Sequence[Any]]) -> dict[str, int]:
        """The first combination that meets the restrictions and fits a block."""
        block = [condition(axis, [*self._domains], "block") for axis in self._block_axes()]

        def is_valid(values: Mapping[str, Any]) -> bool:
            if not all(run(_is_met, where, each, values) for where, each in self._restrictions):
                return False
            return math.prod(int(run(axis, "block", values)) for axis in block) <= _MAX_THREADS

        for combination in itertools.islice(itertools.product(*values.values()), _MOST_TRIED):
            chosen = dict(zip(values, combination))
            if is_valid({**chosen, **self._problem}):
                return {name: self._number(name, value) for name, value in chosen.items()}
        raise InvalidArgumentError(
            f"no combination of the values meets them with a block of at most {_MAX_THREADS} threads",
            "restrictions",
        )

    def _number(self, name: str, value: Any) -> int:
        if name not in self._values or value not in self._values[name]:
            raise InvalidArgumentError(f"{name} = {value!r} is not one of the values", "default")
        return self._values[name].index(value) if name in self._choices else int(value)

    # ---- Launches ----

    def _block_axes(self) -> list[Any]:
        if self._asked.block is not None:
            return listed(self._asked.block)
        names = self._asked.block_size_names or _BLOCK_SIZE_NAMES
        axes = [name if name in self._values else 1 for name in names]
        if all(axis == 1 for axis in axes):
            raise InvalidArgumentError(
                f"tune_params has none of {', '.join(names)}: name those that are the block's size by "
                'block_size_names, or pass block=["threads"]',
                "block_size_names",
            )
        while axes[-1] == 1:
            axes.pop()
        return axes

    def _grid(self) -> list[str]:
        if self._asked.grid is not None:
            return [self._expression(axis, "grid") for axis in listed(self._asked.grid)]
        if len(self._sizes) > 3:
            raise InvalidArgumentError("pass grid=[...] for a problem of more than three sizes", "grid")
        names = [*(self._asked.block_size_names or _BLOCK_SIZE_NAMES), "", "", ""]
        grid = []
        for axis, given in enumerate(self._sizes):
            where = f"grid_div_{'xyz'[axis]}"
            divisors = getattr(self._asked, where)
            if divisors is None:
                divisors = [names[axis]] if names[axis] in self._values else []
            factors = [condition(each, [*self._domains], where) for each in listed(divisors)]
            text = " * ".join(each for each in listed(divisors) if isinstance(each, str))
            grid.append(
                self._blocks(condition(given, [*self._domains], "problem_size"), factors, where, text)
            )
        return grid

    def _blocks(self, size: Condition, factors: Sequence[Condition], where: str, text: str) -> str:
        """Of the grid along one axis; the product of the factors may be a fraction."""
        if not factors:
            return expression(size, self._domains, "problem_size", is_size=True)

        def blocks(values: Mapping[str, Any]) -> Any:
            return cdiv(run(size, "problem_size", values), math.prod(factor(values) for factor in factors))

        return expression(blocks, self._domains, where, True, text)


def _is_met(each: Condition, values: Mapping[str, Any]) -> bool:
    return bool(each(values))


def _macro(name: str, choices: Mapping[str, Sequence[Any]]) -> str:
    return f"cubind_{name}" if name in choices else name
