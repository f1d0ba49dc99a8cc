"""The programs that come with the package, and the console scripts that run them."""

from __future__ import annotations

import functools
import os
import pathlib
import shutil
import sys
from typing import NoReturn

from .errors import NotFoundError

_FOLDER = pathlib.Path(__file__).parent / "_programs" / "bin"


def program(name: str) -> pathlib.Path:
    """The path of a program of the package. CUBIND_PROGRAMS names another folder to look in first; without a
    package (a build of the source tree) PATH is searched."""
    folders = [pathlib.Path(folder) for folder in [os.environ.get("CUBIND_PROGRAMS", "")] if folder]
    for folder in (*folders, _FOLDER):
        if (folder / name).is_file():
            return folder / name
    found = shutil.which(name)
    if found is None:
        raise NotFoundError(f"is not in {_FOLDER}, and not on PATH", name)
    return pathlib.Path(found)


def environment() -> dict[str, str]:
    """The environment for a program: NVRTC and CUPTI are found among the packages of this Python, and so is
    Triton if this process uses `cubind.triton`. Other processes may have Triton too, but it would delay the
    agent's start by a second or two."""
    found = {"VIRTUAL_ENV": sys.prefix}
    if "cubind.triton" in sys.modules:
        found["CUBIND_TRITON_PYTHON"] = sys.executable
    return {**found, **os.environ}


def _run(name: str) -> NoReturn:
    path = str(program(name))
    os.execve(path, [path, *sys.argv[1:]], environment())


# The console scripts.
cubind = functools.partial(_run, "cubind")
cubind_agent = functools.partial(_run, "cubind-agent")
cubind_worker = functools.partial(_run, "cubind-worker")
cubind_web = functools.partial(_run, "cubind-web")
cubindctl = functools.partial(_run, "cubindctl")
