"""python -m cubind.inductor SCRIPT ARGS, or python -m cubind.inductor -m MODULE ARGS: as Python runs it, with
cubind.inductor.install() before its first line, as in the processes that it starts and that import torch."""

from __future__ import annotations

import os
import sys

from .._program import checked, run
from ..errors import FailedPreconditionError
from ._install import install

_USAGE = """usage: python -m cubind.inductor SCRIPT ARGS
       python -m cubind.inductor -m MODULE ARGS

Runs an unchanged program in whose compiled graphs matrix products have the choices that a daemon has stored."""


def main() -> None:
    arguments = sys.argv[1:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(_USAGE)
        return
    program = checked(arguments, "cubind.inductor", _USAGE)
    os.environ["CUBIND_INDUCTOR"] = "1"  # in all processes that it starts
    try:
        install()
    except FailedPreconditionError as error:
        print(f"cubind.inductor: {error}", file=sys.stderr)  # the program runs as without it
    run(program)


if __name__ == "__main__":
    main()
