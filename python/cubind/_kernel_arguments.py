"""The arguments of tune_kernel() as those of a spec: arrays and numbers, and which arrays are written."""

from __future__ import annotations

import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ._cuda_source import Parameter
from ._host_arrays import HostArray, host_array, is_number, scalar
from ._spec_parts import count_of, mapping_of
from .errors import InvalidArgumentError


class Arguments:
    """described: as the spec has them, by their names. arrays: by the paths of their files. passed: the names
    in the order of the kernel's parameters. unsure: those of the arrays of which nothing says whether the
    kernel writes them; they count as written until narrow()."""

    def __init__(
        self, asked: types.SimpleNamespace, stem: str, parameters: Sequence[Parameter] | None
    ) -> None:
        self.described: dict[str, dict[str, Any]] = {}
        self.arrays: dict[str, HostArray] = {}
        self.passed: list[str] = []
        self.unsure: list[str] = []
        self._writes: list[str] | None = asked.writes
        for name, value, parameter in _named(asked.arguments, stem, parameters):
            self._pass(name, value, parameter)
        if self._writes is not None and (unknown := {*self._writes} - {*self.passed}):
            raise InvalidArgumentError(f"{', '.join(sorted(unknown))} is no argument", "writes")
        if not self.outputs():
            raise InvalidArgumentError(
                "the kernel writes none of the arrays, so there is nothing to compare: name those that it writes "
                "by writes=[...]",
                "arguments",
            )
        constants = mapping_of(asked.cmem_args or {}, "cmem_args")
        self._symbols = [
            self.add(symbol, host_array(value, None, f"cmem_args {symbol}"), "in", symbol=symbol)
            for symbol, value in constants.items()
        ]

    def names(self) -> list[str]:
        """What a launch passes."""
        return [*self.passed, *self._symbols]

    def outputs(self) -> list[str]:
        return [name for name, each in self.described.items() if each.get("role") == "inout"]

    def add(self, name: str, array: HostArray, role: str, **more: Any) -> str:
        """Its name, which another argument must not have."""
        while name in self.described:
            name += "_"
        file = f"{name}.npy"
        self.arrays[file] = array
        self.described[name] = {
            "buffer": array.type, "extent": str(array.elements), "role": role, "fill": {"npy": file}, **more,
        }  # fmt: skip
        return name

    def narrow(self, written: Collection[int]) -> None:
        """Of the unsure ones, only the parameters of these numbers are written."""
        for name in self.unsure:
            if self.passed.index(name) not in written:
                self.described[name]["role"] = "in"

    def without_contents(self) -> dict[str, dict[str, Any]]:
        """As a spec has them that is only compiled."""
        return {
            name: {key: value for key, value in each.items() if key != "fill"}
            for name, each in self.described.items()
        }

    def told(self) -> str:
        """Which are written, in a line."""
        outputs = self.outputs()
        read = [name for name in self.passed if name not in outputs]
        return f"{', '.join(outputs)}: read and written" + (f"; {', '.join(read)}: read" if read else "")

    def _pass(self, name: str, value: Any, parameter: Parameter | None) -> None:
        where = f"argument {name}"
        number = is_number(value)
        if parameter is not None and not (number or parameter.is_pointer or parameter.type):
            raise InvalidArgumentError(
                "is no number, the kernel's parameter is of a type of its own. A tensor map needs a spec: "
                "docs/kernels.md",
                where,
            )
        if parameter is not None and parameter.is_pointer == number:
            kind, other = ("a number", "a pointer") if number else ("no number", "one")
            raise InvalidArgumentError(f"is {kind}, the kernel's parameter is {other}", where)
        if number:
            self.described[name] = scalar(value, parameter, where)
        else:
            is_read = parameter is not None and parameter.is_read_only
            if self._writes is None and parameter is not None and not is_read:
                self.unsure.append(name)
            is_written = name in self._writes if self._writes is not None else not is_read
            self.add(name, host_array(value, parameter, where), "inout" if is_written else "in")
        self.passed.append(name)


def _named(
    given: Any, stem: str, parameters: Sequence[Parameter] | None
) -> Iterator[tuple[str, Any, Parameter | None]]:
    """In the order of the kernel's parameters."""
    count = count_of(given, "arguments")
    if parameters is not None and count != len(parameters):
        names = ", ".join(each.name or "(unnamed)" for each in parameters)
        raise InvalidArgumentError(
            f"there are {count}, {stem} has {len(parameters)} parameters: {names}", "arguments"
        )
    if isinstance(given, Mapping):
        by_name = {each.name: each for each in parameters or ()}
        for name in by_name if parameters else given:
            if name not in given:
                raise InvalidArgumentError(
                    f"has no {name} (there are {', '.join(map(str, given))})", "arguments"
                )
            yield name, given[name], by_name.get(name)
        return
    for index, value in enumerate(given):
        parameter = parameters[index] if parameters is not None else None
        yield (parameter.name if parameter else "") or f"argument_{index}", value, parameter
