"""Triton in this process, and the ptxas programs that it brings."""

from __future__ import annotations

import dataclasses
import pathlib
import re
from typing import Any

_OLDEST, _NEWEST = (3, 4), (3, 9)  # versions of Triton

# The compute capabilities that are offered, as Triton counts them.
_ARCHITECTURES = (75, 80, 86, 89, 90, 100, 103, 120)


class ToolchainError(Exception):
    """Triton is of a version that is not known."""


@dataclasses.dataclass(frozen=True)
class Toolchain:
    """ptxas: its version for each architecture. programs: what a compile has to start."""

    triton: str
    ptxas: dict[int, str]
    folder: pathlib.Path
    programs: list[pathlib.Path]


def check_version(triton: str) -> None:
    """Raise ToolchainError for a version that cubind was not tested with."""
    version = tuple(int(part) for part in re.findall(r"\d+", triton)[:2])
    if not _OLDEST <= version <= _NEWEST:
        least, most = (".".join(map(str, end)) for end in (_OLDEST, _NEWEST))
        known = f"the newest that is known is {most}" if version > _NEWEST else f"{least} to {most} are"
        raise ToolchainError(f"Triton {triton} is not supported: {known}")


def load() -> Toolchain:
    """Import Triton, with all that every compile needs of it. Raises ImportError or ToolchainError."""
    import triton
    from triton.compiler import compiler
    from triton.runtime import cache

    check_version(triton.__version__)
    ptxas: dict[int, str] = {}
    programs = set()
    for architecture in _ARCHITECTURES:
        found = _ptxas("get_ptxas_version", architecture)
        if found is not None:
            ptxas[architecture] = _number(found)
            programs.add(pathlib.Path(_ptxas("get_ptxas", architecture).path))
    # Triton's key of itself takes half a second and is remembered: once, before processes are forked.
    key = getattr(compiler, "triton_key", None) or getattr(cache, "triton_key", None)
    if key is not None:
        key()
    folder = pathlib.Path(triton.__file__).resolve().parent
    return Toolchain(triton.__version__, ptxas, folder, sorted(programs))


def ptxas_version(architecture: int) -> str:
    """The version of the ptxas that Triton runs for an architecture; "" where it has none."""
    found = _ptxas("get_ptxas_version", architecture)
    return "" if found is None else _number(found)


# Before Triton 3.6 there was one ptxas for all architectures.
def _ptxas(function: str, architecture: int) -> Any:
    from triton.backends.nvidia import compiler as nvidia

    ask = getattr(nvidia, function)
    try:
        return ask(architecture)
    except TypeError:
        return ask()
    except (OSError, RuntimeError):
        return None


def _number(version: str) -> str:
    """12.8.93 of what `ptxas --version` prints."""
    found = re.search(r"V(\d+(?:\.\d+)+)", version)
    return found.group(1) if found else version[:64]
