"""What `python -m cubind.triton table` must know of a project's kernel to write the file that the project
reads."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import InvalidArgumentError

Values = Mapping[str, int | float | str | bool]


@dataclasses.dataclass(frozen=True)
class Table:
    """A kernel whose configurations come from a file: an object from sizes to values, as of vLLM and SGLang.

    kernel: of @triton.jit; the values of a row are its keywords: parameters, and num_warps and the like.
    file: the file's name as the project looks for it. {device_name} stands for the GPU's name with
        underscores, {triton} for Triton's version with underscores.
    rows: the sizes that are measured.
    call: called as call(kernel, size, values): launches the kernel as the project does for that size, without
        the values of the row: kernel[grid](a, b, c, ...). The times of several launches are added. Nothing
        runs; tensors may lie in the CPU's memory, uninitialized but for integers. values: those of `by`.
    default: default(size): what the project launches where it has no file.
    candidates: what may win, the same for each row, or candidates(size).
    by: values that the arguments depend on, as a block size by which tokens are padded. Configurations are
        compared within one value of these by their results, and beyond it by their times alone.
    size: the size's name, for the tables of the daemon.
    nearest: the project takes the row of the nearest size, as vLLM and SGLang. Rows that win nothing hold the
        default then; otherwise they are left out.
    """

    kernel: Any
    file: str
    rows: Sequence[int]
    call: Callable[[Any, int, Values], Any]
    default: Callable[[int], Values]
    candidates: Sequence[Values] | Callable[[int], Sequence[Values]]
    by: Sequence[str] = ()
    size: str = "M"
    nearest: bool = True

    def candidates_of(self, size: int) -> list[Values]:
        found = self.candidates(size) if callable(self.candidates) else self.candidates
        return list(found)


def load(reference: str) -> Table:
    """The Table of a Python file or module: moe_table.py, package.moe_table, or package.module:name. Its name
    is `table` where none is given. Raises InvalidArgumentError, and what the module raises."""
    source, _, name = reference.partition(":")
    name = name or "table"
    module = _of_file(source) if source.endswith(".py") else _of_name(source)
    found = getattr(module, name, None)
    if not isinstance(found, Table):
        raise InvalidArgumentError(f"has no cubind.triton.Table named {name}", source)
    return found


def _of_name(source: str) -> Any:
    try:
        return importlib.import_module(source)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{source}.".startswith(f"{error.name}."):
            raise  # by the module
        raise InvalidArgumentError("there is no such module; a file's name ends with .py", source) from None


def _of_file(source: str) -> Any:
    path = pathlib.Path(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InvalidArgumentError("there is no such file", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
