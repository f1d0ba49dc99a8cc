"""From what a caller of tune_kernel() gives to a kernel spec with its files."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ._cuda_source import Parameter, read_source
from ._defining import TOLERANCES
from ._expressions import Condition, condition, expression, run
from ._host_arrays import HostArray, host_array, is_number, scalar
from ._interface import Interface
from ._spec_parts import (
    bound,
    count_of,
    entry_of,
    listed,
    options_of,
    prelude,
    printed,
    sizes_of,
    texts,
    values_of,
    with_values,
)
from ._written import written_parameters
from .arrays import ITEM_BYTES
from .errors import InvalidArgumentError

_BLOCK_SIZE_NAMES = ("block_size_x", "block_size_y", "block_size_z")
_MAX_THREADS = 1024
_MOST_TRIED = 1_000_000  # combinations, for one that meets the restrictions
_MAX_NAME = 64
_NAME_DIGITS = 12
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_NOT_COMPARED = "the outputs are not compared: nothing says that they are correct"
_ANSWER = "cubind_answer"  # the kernel that writes what a caller expects
_ANSWER_THREADS = 256
_ANSWER_SOURCE = f"""
template <typename Bits, long long count>
__global__ void {_ANSWER}(const Bits* answer, Bits* out) {{
  const long long i = static_cast<long long>(blockIdx.x) * {_ANSWER_THREADS} + threadIdx.x;
  if (i < count) out[i] = answer[i];
}}
"""
_BITS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}


@dataclasses.dataclass(frozen=True)
class Asked:
    """What tune_kernel() was given, by its names there."""

    kernel_name: str
    kernel_source: Any
    problem_size: Any
    arguments: Any
    tune_params: Mapping[str, Sequence[Any]]
    restrictions: Any = None
    answer: Any = None
    reference: Any = None
    tolerance: Any = None
    block_size_names: Sequence[str] | None = None
    grid_divs: Sequence[Any] = (None, None, None)
    grid: Any = None
    block: Any = None
    shared_bytes: Any = 0
    cmem_args: Mapping[str, Any] | None = None
    compiler_options: Sequence[str] = ()
    default: Mapping[str, Any] | None = None
    writes: Sequence[str] | None = None


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
        """The spec as a file."""
        return printed(self.spec).encode() + b"\n"

    def interface(self) -> Interface:
        """What a launch is given."""
        arguments: dict[str, dict[str, Any]] = self.spec["arguments"]
        buffers = {name: each for name, each in arguments.items() if "buffer" in each}
        return Interface(
            dims=tuple(self.problem),
            types=(),
            flags=(),
            buffer_types={name: each["buffer"] for name, each in buffers.items()},
            shapes={},
        )

    def named(self, name: str) -> Definition:
        """The same kernel under another name."""
        return dataclasses.replace(self, name=name, stem=name, spec={**self.spec, "name": name})

    def values(self, configuration: Mapping[str, int]) -> dict[str, Any]:
        """A configuration in the caller's values."""
        return {
            name: self.choices[name][value] if name in self.choices else value
            for name, value in configuration.items()
        }


def define(asked: Asked) -> Definition:
    """Raises InvalidArgumentError with the name of the parameter at fault, OSError for a source's file."""
    return _Definer(asked).define()


class _Definer:
    def __init__(self, asked: Asked) -> None:
        names = {each: getattr(asked, each) for each in ("writes", "block_size_names")}
        self._asked = dataclasses.replace(
            asked, **{each: texts(given) for each, given in names.items() if given is not None}
        )
        if not isinstance(asked.kernel_name, str):
            raise InvalidArgumentError(
                f"is a {type(asked.kernel_name).__name__}: a text is meant", "kernel_name"
            )
        self._stem = asked.kernel_name.partition("<")[0].strip().rpartition("::")[2]
        self._source = read_source(asked.kernel_source, self._stem, "kernel_source")
        self._parameters = self._source.parameters(asked.kernel_name, "kernel_name")
        self._problem, self._sizes = sizes_of(asked.problem_size)
        self._values = values_of(asked.tune_params)
        for place, names in (("problem_size", self._problem), ("tune_params", self._values)):
            for name in names:
                if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
                    raise InvalidArgumentError(f'"{name}" is no name: letters, digits and _', place)
        self._choices = {
            name: values
            for name, values in self._values.items()
            if not all(isinstance(value, int) for value in values)
        }
        self._domains: dict[str, Sequence[Any]] = {
            **self._values,
            **{name: [value] for name, value in self._problem.items()},
        }
        self._options, self._defines = options_of(texts(asked.compiler_options))
        self._written: frozenset[int] | None = None
        self._arguments: dict[str, dict[str, Any]] = {}
        self._files: dict[str, bytes] = {}
        self._arrays: dict[str, HostArray] = {}
        self._notes: list[str] = []

    def define(self) -> Definition:
        restrictions = self._restrictions()
        block, grid, shared = (
            self._block(),
            self._grid(),
            self._expression(self._asked.shared_bytes, "shared_bytes"),
        )
        default = self._default(restrictions)
        self._written = self._find_written(restrictions, default)
        passed = self._add_arguments()
        constants = self._add_constants()
        launch = {
            "entry": self._asked.kernel_name,
            "arguments": [*passed, *constants],
            "grid": grid,
            "block": block,
        }
        if shared != "0":
            launch["shared_bytes"] = shared
        answers = self._add_answers(passed)
        reference = self._reference(launch, answers, default)
        self._files.update({path: text.encode() for path, text in self._source.files.items()})
        self._files[self._source.path] = (prelude(self._choices) + self._source.text).encode()
        spec: dict[str, Any] = {
            "description": "made by cubind.tune_kernel()",
            "source": self._source.path,
            "problem": {"dims": dict.fromkeys(self._problem, "of the tuned problem")},
            "tunables": {name: self._numbers(name) for name in self._values},
            # Arrays and integers are those of one problem.
            "constraints": [f"{name} == {value}" for name, value in self._problem.items()]
            + [expression(each, self._domains, place) for place, each in restrictions],
            "default": [default],
            "arguments": self._arguments,
            "launches": [launch],
            "reference": reference,
            "tolerance": self._tolerance(),
            "defines": [*self._defines, *(f"{self._macro(name)}={{{name}}}" for name in self._values)],
        }
        if self._options:
            spec["options"] = self._options
        self._tell(passed)
        name = self._name(spec)
        return Definition(
            name,
            self._stem,
            {"name": name, **spec},
            self._files,
            self._arrays,
            self._problem,
            self._choices,
            tuple(self._notes),
        )

    def _name(self, spec: dict[str, Any]) -> str:
        """Of everything that the daemon is given, so that its results are those of this kernel alone."""
        digests = {path: hashlib.sha256(content).hexdigest() for path, content in self._files.items()}
        arrays = [[path, each.shape, each.digest] for path, each in self._arrays.items()]
        text = json.dumps([spec, digests, arrays], sort_keys=True, allow_nan=False)
        digits = hashlib.sha256(text.encode()).hexdigest()[:_NAME_DIGITS]
        return f"{self._stem[: _MAX_NAME - _NAME_DIGITS - 1]}_{digits}"

    # ---- Values ----

    def _numbers(self, name: str) -> list[int]:
        values = self._values[name]
        return list(range(len(values))) if name in self._choices else [int(value) for value in values]

    def _macro(self, name: str) -> str:
        return f"cubind_{name}" if name in self._choices else name

    def _expression(self, given: Any, place: str) -> str:
        return expression(condition(given, [*self._domains], place), self._domains, place)

    def _restrictions(self) -> list[tuple[str, Condition]]:
        given = self._asked.restrictions
        several = isinstance(given, (list, tuple))
        places = [
            (f"restrictions[{i}]" if several else "restrictions") for i in range(len(given) if several else 1)
        ]
        conditions = list(given) if several else [] if given is None else [given]
        return [(place, condition(each, [*self._domains], place)) for place, each in zip(places, conditions)]

    def _default(self, restrictions: list[tuple[str, Condition]]) -> dict[str, int]:
        """The caller's, or the first combination that is valid."""
        if self._asked.default is not None:
            return {name: self._number(name, value) for name, value in self._asked.default.items()}
        return self._first_valid(restrictions, self._values)

    def _first_valid(
        self, restrictions: list[tuple[str, Condition]], values: Mapping[str, Sequence[Any]]
    ) -> dict[str, int]:
        """The first combination that meets the restrictions and fits a block."""
        block = [condition(axis, [*self._domains], "block") for axis in self._block_axes()]

        def is_valid(values: Mapping[str, Any]) -> bool:
            if not all(run(_is_met, place, each, values) for place, each in restrictions):
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

    def _block(self) -> list[str]:
        return [self._expression(axis, "block") for axis in self._block_axes()]

    def _grid(self) -> list[str]:
        if self._asked.grid is not None:
            return [self._expression(axis, "grid") for axis in listed(self._asked.grid)]
        if len(self._sizes) > 3:
            raise InvalidArgumentError("pass grid=[...] for a problem of more than three sizes", "grid")
        names = [*(self._asked.block_size_names or _BLOCK_SIZE_NAMES), "", "", ""]
        grid = []
        for axis, given in enumerate(self._sizes):
            size = self._expression(given, "problem_size")
            divisors = self._asked.grid_divs[axis]
            if divisors is None:
                divisors = [names[axis]] if names[axis] in self._values else []
            place = f"grid_div_{'xyz'[axis]}"
            factors = [self._expression(each, place) for each in listed(divisors)]
            divisor = " * ".join(f if re.fullmatch(r"\w+", f) else f"({f})" for f in factors)
            grid.append(f"cdiv({size}, {divisor})" if divisor else size)
        return grid

    # ---- Arguments ----

    def _named_arguments(self) -> Iterator[tuple[str, Any, Parameter | None]]:
        """In the order of the kernel's parameters."""
        given, parameters = self._asked.arguments, self._parameters
        count = count_of(given, "arguments")
        if parameters is not None and count != len(parameters):
            names = ", ".join(each.name or "(unnamed)" for each in parameters)
            raise InvalidArgumentError(
                f"there are {count}, {self._stem} has {len(parameters)} parameters: {names}", "arguments"
            )
        if isinstance(given, Mapping):
            by_name = {each.name: each for each in parameters or ()}
            order = [each.name for each in parameters or ()] if parameters else list(given)
            for name in order:
                if name not in given:
                    raise InvalidArgumentError(
                        f"has no {name} (there are {', '.join(map(str, given))})", "arguments"
                    )
                yield name, given[name], by_name.get(name)
            return
        for index, value in enumerate(given):
            parameter = parameters[index] if parameters is not None else None
            yield (parameter.name if parameter else "") or f"argument_{index}", value, parameter

    def _add_arguments(self) -> list[str]:
        passed = []
        for name, value, parameter in self._named_arguments():
            place = f"argument {name}"
            number = is_number(value)
            if parameter is not None and parameter.is_pointer == number:
                kind, other = ("a number", "a pointer") if number else ("no number", "one")
                raise InvalidArgumentError(f"is {kind}, the kernel's parameter is {other}", place)
            if number:
                self._arguments[name] = scalar(value, parameter, place)
            else:
                self._add_buffer(
                    name, host_array(value, parameter, place), self._role(name, parameter, len(passed))
                )
            passed.append(name)
        if self._asked.writes is not None and (unknown := {*self._asked.writes} - {*passed}):
            raise InvalidArgumentError(f"{', '.join(sorted(unknown))} is no argument", "writes")
        if not self._outputs():
            raise InvalidArgumentError(
                "the kernel writes none of the arrays, so there is nothing to compare: name those that it writes "
                "by writes=[...]",
                "arguments",
            )
        return passed

    def _role(self, name: str, parameter: Parameter | None, number: int) -> str:
        if self._asked.writes is not None:
            return "inout" if name in self._asked.writes else "in"
        is_read = parameter is not None and parameter.is_read_only
        return "in" if is_read or (self._written is not None and number not in self._written) else "inout"

    def _find_written(
        self, restrictions: list[tuple[str, Condition]], default: Mapping[str, int]
    ) -> frozenset[int] | None:
        """The numbers of the parameters that are written, where several may be; None: unknown. Two
        combinations are looked at, since macros may choose what is written."""
        pointers = [i for i, each in enumerate(self._parameters or ()) if each.is_pointer]
        unsure = [i for i in pointers if self._parameters and not self._parameters[i].is_read_only]
        if self._asked.writes is not None or len(unsure) < 2:
            return None
        second = {name: [*values[1:], *values[:1]] for name, values in self._values.items()}
        found: frozenset[int] = frozenset()
        for values in (default, self._first_valid(restrictions, second)):
            files = {**self._source.files, self._source.path: self._default_text(self._source.text, values)}
            launch = with_values({"entry": self._asked.kernel_name, "grid": [], "block": []}, values)
            written = written_parameters(self._source.path, files, launch["entry"], self._options, pointers)
            if not written:
                return None
            found |= written
        return found

    def _add_buffer(self, name: str, array: HostArray, role: str, **more: Any) -> str:
        """Its name, which another argument must not have."""
        while name in self._arguments:
            name += "_"
        file = f"{name}.npy"
        self._arrays[file] = array
        self._arguments[name] = {
            "buffer": array.type, "extent": str(array.elements), "role": role, "fill": {"npy": file}, **more,
        }  # fmt: skip
        return name

    def _outputs(self) -> list[str]:
        return [name for name, each in self._arguments.items() if each.get("role") == "inout"]

    def _add_constants(self) -> list[str]:
        names = []
        for symbol, value in (self._asked.cmem_args or {}).items():
            array = host_array(value, None, f"cmem_args {symbol}")
            names.append(self._add_buffer(symbol, array, "in", symbol=symbol))
        return names

    # ---- What is correct ----

    def _add_answers(self, passed: list[str]) -> dict[str, str]:
        """The buffers of the answers, by the outputs that they are for."""
        given = self._asked.answer
        if given is None:
            return {}
        if not isinstance(given, Mapping):
            given = [given] if hasattr(given, "dtype") else given
            if (count := count_of(given, "answer")) > len(passed):
                raise InvalidArgumentError(f"has {count} arrays for {len(passed)} arguments", "answer")
            given = {name: each for name, each in zip(passed, given) if each is not None}
        found = {}
        for name, value in given.items():
            place = f"answer {name}"
            if name not in self._outputs():
                raise InvalidArgumentError(
                    f"the kernel writes {', '.join(self._outputs())}, and not this", place
                )
            argument = self._arguments[name]
            expected = Parameter(name, argument["buffer"], True, True)
            array = host_array(value, expected, place)
            if str(array.elements) != argument["extent"]:
                raise InvalidArgumentError(
                    f"has {array.elements} elements, the argument {argument['extent']}", place
                )
            found[name] = self._add_buffer(f"answer_{name}", array, "in")
        return found

    def _reference(self, launch: dict[str, Any], answers: dict[str, str], default: dict[str, int]) -> Any:
        """The outputs that have no answer are those of the default configuration, or of the caller's
        reference."""
        given = self._asked.reference
        others = [name for name in self._outputs() if name not in answers]
        if given is None and not answers:
            self._notes.append(
                _NOT_COMPARED
                if self._asked.tolerance == math.inf
                else "the outputs are compared with those of the default configuration alone: pass answer= or "
                "reference= to know that they are correct"
            )
            return "default"
        launches, text = [], ""
        if given is not None:
            launches, text = (
                [self._reference_launch(given, launch["arguments"])],
                self._reference_text(given, default),
            )
        elif others:
            self._notes.append(f"{', '.join(others)}: compared with the default configuration alone")
            launches, text = [with_values(launch, default)], self._default_text(self._source.text, default)
        launches += [self._answer_launch(name, answer) for name, answer in answers.items()]
        path = f"{self._stem}_reference.cu"
        self._files[path] = (text + (_ANSWER_SOURCE if answers else "")).encode()
        return {"source": path, "launches": launches}

    def _default_text(self, text: str, default: Mapping[str, int]) -> str:
        macros = [f"#define {each.replace('=', ' ', 1)}\n" for each in self._defines]
        macros += [f"#define {self._macro(name)} {value}\n" for name, value in default.items()]
        return "".join(macros) + prelude(self._choices) + text

    def _reference_text(self, given: Mapping[str, Any], default: Mapping[str, int]) -> str:
        source = self._source
        if given.get("kernel_source") is not None:
            source = read_source(given["kernel_source"], f"{self._stem}_reference", "reference kernel_source")
            self._files.update({path: text.encode() for path, text in source.files.items()})
        source.parameters(entry_of(given), "reference kernel_name")
        return self._default_text(source.text, default)

    def _reference_launch(self, given: Mapping[str, Any], arguments: list[str]) -> dict[str, Any]:
        launch = {"entry": entry_of(given), "arguments": arguments}
        for axes in ("grid", "block"):
            if axes not in given:
                raise InvalidArgumentError(f'has no "{axes}": a list of expressions of the size', "reference")
            launch[axes] = [self._expression(axis, f"reference {axes}") for axis in listed(given[axes])]
        return launch

    def _answer_launch(self, name: str, answer: str) -> dict[str, Any]:
        argument = self._arguments[name]
        count, bits = int(argument["extent"]), _BITS[ITEM_BYTES[argument["buffer"]]]
        return {
            "entry": f"{_ANSWER}<{bits}, {count}>",
            "arguments": [answer, name],
            "grid": [str(-(-count // _ANSWER_THREADS))],
            "block": [str(_ANSWER_THREADS)],
        }

    def _tolerance(self) -> dict[str, Any]:
        given = self._asked.tolerance
        found = {}
        for name in self._outputs():
            type_ = self._arguments[name]["buffer"]
            relative, absolute = TOLERANCES.get(type_, (0, 0))
            found[type_] = {"rtol": relative, "atol": absolute}
            both = dict.fromkeys(("rtol", "atol"), given)
            bounds = {} if given is None else given if isinstance(given, Mapping) else both
            found[type_].update({name: bound(value) for name, value in bounds.items()})
        return found

    def _tell(self, passed: list[str]) -> None:
        outputs = self._outputs()
        read = [name for name in passed if name not in outputs]
        told = f"{', '.join(outputs)}: read and written" + (f"; {', '.join(read)}: read" if read else "")
        self._notes.insert(0, told)


def _is_met(each: Condition, values: Mapping[str, Any]) -> bool:
    return bool(each(values))
