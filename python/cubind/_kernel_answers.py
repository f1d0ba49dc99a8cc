"""What a kernel's outputs are compared with: answers, a reference or the default, and the tolerance."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._cuda_source import Parameter, Source, read_source
from ._defining import TOLERANCES
from ._host_arrays import host_array
from ._kernel_arguments import Arguments
from ._spec_parts import bound, count_of, entry_of, listed, with_values
from .arrays import ITEM_BYTES
from .errors import InvalidArgumentError

_NOT_COMPARED = "the outputs are not compared: nothing says that they are correct"
_DEFAULT_ALONE = (
    "the outputs are compared with those of the default configuration alone: pass answer= or reference= to know "
    "that they are correct"
)
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


class Answers:
    """given: gets a buffer for each answer. files: those of the reference. notes: what was assumed."""

    def __init__(self, asked: types.SimpleNamespace, stem: str, given: Arguments) -> None:
        self._asked = asked
        self._stem = stem
        self._given = given
        self.files: dict[str, bytes] = {}
        self.notes: list[str] = []
        self._answers = {name: self._add(name, value) for name, value in self._named()}

    def reference(
        self,
        source: Source,
        launch: Mapping[str, Any],
        default: Mapping[str, int],
        prelude: str,
        expression: Callable[[Any, str], str],
    ) -> Any:
        """The spec's. Outputs without an answer are those of the caller's reference, else of `default`.
        prelude: the default's macros. expression: of a size, for a parameter's name."""
        given = self._asked.reference
        others = [name for name in self._given.outputs() if name not in self._answers]
        if given is None and not self._answers:
            self.notes.append(_NOT_COMPARED if self._asked.tolerance == math.inf else _DEFAULT_ALONE)
            return "default"
        launches, text = [], ""
        if given is not None:
            text = prelude + self._text(given, source)
            launches = [_launch(given, launch["arguments"], expression)]
        elif others:
            self.notes.append(f"{', '.join(others)}: compared with the default configuration alone")
            text, launches = prelude + source.text, [with_values(launch, default)]
        launches += [self._answer_launch(name, answer) for name, answer in self._answers.items()]
        path = f"{self._stem}_reference.cu"
        self.files[path] = (text + (_ANSWER_SOURCE if self._answers else "")).encode()
        return {"source": path, "launches": launches}

    def _named(self) -> Sequence[tuple[str, Any]]:
        """The answers by the outputs that they are for."""
        given, passed = self._asked.answer, self._given.passed
        if given is None or isinstance(given, Mapping):
            return [*(given or {}).items()]
        given = [given] if hasattr(given, "dtype") else given
        if (count := count_of(given, "answer")) > len(passed):
            raise InvalidArgumentError(f"has {count} arrays for {len(passed)} arguments", "answer")
        return [(name, each) for name, each in zip(passed, given) if each is not None]

    def _add(self, name: str, value: Any) -> str:
        """The answer's buffer."""
        where, outputs = f"answer {name}", self._given.outputs()
        if name not in outputs:
            raise InvalidArgumentError(f"the kernel writes {', '.join(outputs)}, and not this", where)
        argument = self._given.described[name]
        array = host_array(value, Parameter(name, argument["buffer"], True, True), where)
        if str(array.elements) != argument["extent"]:
            raise InvalidArgumentError(
                f"has {array.elements} elements, the argument {argument['extent']}", where
            )
        return self._given.add(f"answer_{name}", array, "in")

    def _text(self, given: Mapping[str, Any], source: Source) -> str:
        if isinstance(given, Mapping) and given.get("kernel_source") is not None:
            source = read_source(given["kernel_source"], f"{self._stem}_reference", "reference kernel_source")
            self.files.update({path: text.encode() for path, text in source.files.items()})
        source.parameters(entry_of(given), "reference kernel_name")
        return source.text

    def _answer_launch(self, name: str, answer: str) -> dict[str, Any]:
        argument = self._given.described[name]
        count, bits = int(argument["extent"]), _BITS[ITEM_BYTES[argument["buffer"]]]
        return {
            "entry": f"{_ANSWER}<{bits}, {count}>",
            "arguments": [answer, name],
            "grid": [str(-(-count // _ANSWER_THREADS))],
            "block": [str(_ANSWER_THREADS)],
        }


def tolerance_of(asked: Any, given: Arguments) -> dict[str, Any]:
    """The spec's, for each type of the outputs, from that of tune_kernel()."""
    found = {}
    for name in given.outputs():
        type_ = given.described[name]["buffer"]
        relative, absolute = TOLERANCES.get(type_, (0, 0))
        found[type_] = {"rtol": relative, "atol": absolute}
        both = dict.fromkeys(("rtol", "atol"), asked)
        bounds = {} if asked is None else asked if isinstance(asked, Mapping) else both
        found[type_].update({name: bound(value) for name, value in bounds.items()})
    return found


def _launch(
    given: Mapping[str, Any], arguments: Sequence[str], expression: Callable[[Any, str], str]
) -> dict[str, Any]:
    launch: dict[str, Any] = {"entry": entry_of(given), "arguments": arguments}
    for axes in ("grid", "block"):
        if axes not in given:
            raise InvalidArgumentError(f'has no "{axes}": a list of expressions of the size', "reference")
        launch[axes] = [expression(axis, f"reference {axes}") for axis in listed(given[axes])]
    return launch
