"""python -m cubind.triton SCRIPT ARGS, or python -m cubind.triton -m MODULE ARGS: as Python runs it, with
cubind.triton.install() before its first line.

python -m cubind.triton record -o FILE SCRIPT ARGS: the same, and the kernels that it asks for are added to
FILE. python -m cubind.triton bake FILE has a daemon compile them. table: see _table_command.py.
"""

from __future__ import annotations

import os
import pathlib
import runpy
import sys
import tempfile

from .._text import printable
from ..errors import CubindError, FailedPreconditionError
from ._install import install

_USAGE = """usage: python -m cubind.triton [record -o FILE] SCRIPT ARGS
       python -m cubind.triton [record -o FILE] -m MODULE ARGS
       python -m cubind.triton bake FILE
       python -m cubind.triton table --help"""

_HELP = f"""{_USAGE}

Without a command: runs an unchanged program whose Triton kernels a daemon compiles and tunes.

  record   runs it too, and adds the kernels that it asks for to FILE
  bake     has the daemon compile the kernels of FILE; needs no GPU
  table    writes the files of tuned configurations that vLLM and SGLang read"""


def main() -> None:
    """Do what the command line says."""
    arguments = sys.argv[1:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(_HELP)
    elif arguments[:1] == ["bake"]:
        _bake(arguments[1:])
    elif arguments[:1] == ["table"]:
        from . import _table_command

        sys.exit(_table_command.main(arguments[1:]))
    elif arguments[:2] == ["record", "-o"] and len(arguments) > 3:
        # A kernel that is in Triton's cache already would not be asked for.
        with tempfile.TemporaryDirectory(prefix="cubind-record-") as cache:
            os.environ["TRITON_CACHE_DIR"] = cache
            _run(arguments[3:], arguments[2])
    else:
        _run(arguments, None)


def _run(arguments: list[str], record: str | None) -> None:
    is_module = arguments[:1] == ["-m"]
    arguments = arguments[is_module:]
    if not arguments or arguments[0].startswith("-"):
        sys.exit(_USAGE)
    if not is_module and not os.path.exists(arguments[0]):
        sys.exit(f"cubind.triton: {arguments[0]}: there is no such script or command\n{_USAGE}")
    try:
        install(record=record)
    except FailedPreconditionError as error:
        if record is not None:
            sys.exit(f"cubind.triton: {error}")
        print(f"cubind.triton: {error}", file=sys.stderr)  # the program runs as without it
    sys.argv = arguments
    if is_module:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        # Python's own first entry of sys.path is the script's folder; until now it is the current one.
        sys.path[0] = str(pathlib.Path(arguments[0]).resolve().parent)
        runpy.run_path(arguments[0], run_name="__main__")


def _bake(arguments: list[str]) -> None:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.exit(_USAGE)
    from .. import connect
    from ._baking import bake
    from ._recording import read

    try:
        entries = list(read(arguments[0]))
        if not entries:
            sys.exit(f"cubind.triton: {arguments[0]}: has no kernel: the recorded program asked for none")
        with connect() as client:
            baked = bake(client, entries)
            print(f"{baked.kernels} kernels can be served by {client.address}")
    except (CubindError, OSError) as error:
        sys.exit(f"cubind.triton: {error}")
    for name, cause in baked.failed.items():
        print(printable(f"cubind.triton: {name} is not compiled: {cause}"), file=sys.stderr)
    sys.exit(1 if baked.failed else 0)


if __name__ == "__main__":
    main()
