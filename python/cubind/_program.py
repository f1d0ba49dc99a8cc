"""Running an unchanged program, for `python -m cubind.PACKAGE SCRIPT ARGS`."""

from __future__ import annotations

import os
import pathlib
import runpy
import sys
from typing import NoReturn


def checked(arguments: list[str], package: str, usage: str) -> list[str]:
    """The program with its arguments: a script, or -m and a module. Ends this one where there is none."""
    is_module = arguments[:1] == ["-m"]
    named = arguments[is_module:]
    if not named or named[0].startswith("-"):
        refuse(usage)
    if not is_module and not os.path.exists(named[0]):
        refuse(f"{package}: {named[0]}: there is no such script or command\n{usage}")
    return arguments


def refuse(usage: str) -> NoReturn:
    """Ends the process, whose command line is wrong."""
    print(usage, file=sys.stderr)
    sys.exit(2)


def run(arguments: list[str]) -> None:
    """As Python does."""
    is_module = arguments[:1] == ["-m"]
    arguments = arguments[is_module:]
    sys.argv = arguments
    if is_module:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        # Python's own first entry of sys.path is the script's folder; until now it is the current one.
        sys.path[0] = str(pathlib.Path(arguments[0]).resolve().parent)
        runpy.run_path(arguments[0], run_name="__main__")
