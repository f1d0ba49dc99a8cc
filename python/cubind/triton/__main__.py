"""python -m cubind.triton SCRIPT ARGS, or python -m cubind.triton -m MODULE ARGS: as Python runs it, with
cubind.triton.install() before its first line."""

from __future__ import annotations

import pathlib
import runpy
import sys

from ..errors import FailedPreconditionError
from ._install import install

_USAGE = "usage: python -m cubind.triton SCRIPT ARGS, or python -m cubind.triton -m MODULE ARGS"


def main() -> None:
    """Run the program of the command line."""
    arguments = sys.argv[1:]
    is_module = arguments[:1] == ["-m"]
    arguments = arguments[is_module:]
    if not arguments or arguments[0].startswith("-"):
        sys.exit(_USAGE)
    try:
        install()
    except FailedPreconditionError as error:
        print(f"cubind.triton: {error}", file=sys.stderr)  # the program runs as without it
    sys.argv = arguments
    if is_module:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        # Python's own first entry of sys.path is the script's folder; until now it is the current one.
        sys.path[0] = str(pathlib.Path(arguments[0]).resolve().parent)
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
