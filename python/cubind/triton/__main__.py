"""python -m cubind.triton SCRIPT ARGS, or python -m cubind.triton -m MODULE ARGS: as Python runs it, with
cubind.triton.install() before its first line, as in the processes that it starts and that import torch.

python -m cubind.triton record -o FILE SCRIPT ARGS: the same, and the kernels that it asks for are added to
FILE. With --target it needs no GPU, and the kernels are launched nowhere. python -m cubind.triton bake FILE
has a daemon compile them. table: see _table_command.py.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
import tempfile
import traceback
from collections.abc import Iterator

from .._program import checked, refuse, run
from .._text import printable
from ..errors import CubindError, FailedPreconditionError
from . import _autoload
from ._install import install

_NAME = "cubind.triton"
_USAGE = """usage: python -m cubind.triton SCRIPT ARGS
       python -m cubind.triton -m MODULE ARGS
       python -m cubind.triton record [--target ARCHITECTURE] -o FILE SCRIPT ARGS
       python -m cubind.triton record [--target ARCHITECTURE] -o FILE -m MODULE ARGS
       python -m cubind.triton bake FILE
       python -m cubind.triton table --help"""

_HELP = f"""{_USAGE}

Without a command: runs an unchanged program whose Triton kernels a daemon compiles and tunes.

  record   runs it too, and adds the kernels that it asks for to FILE; --target sm_90 needs no GPU: tensors on
           a GPU have shapes alone, and nothing is launched
  bake     has the daemon compile the kernels of FILE; needs no GPU
  table    writes the files of tuned configurations that vLLM and SGLang read"""


def main() -> None:
    arguments = sys.argv[1:]
    asked = arguments[1:2] if arguments[:1] in (["record"], ["bake"]) else arguments[:1]
    if asked in (["-h"], ["--help"]):
        print(_HELP)
    elif arguments[:1] == ["bake"]:
        _bake(arguments[1:])
    elif arguments[:1] == ["table"]:
        from . import _table_command

        sys.exit(_table_command.main(arguments[1:]))
    elif arguments[:1] == ["record"]:
        _record(arguments[1:])
    else:
        program = checked(arguments, _NAME, _USAGE)
        _autoload.begin(None)
        with _ending():
            try:
                install()
            except FailedPreconditionError as error:
                print(f"cubind.triton: {error}", file=sys.stderr)  # the program runs as without it
        run(program)


@contextlib.contextmanager
def _ending() -> Iterator[None]:
    """Around what the command itself does: errors end it with a sentence. The program's have tracebacks."""
    try:
        yield
    except (CubindError, OSError) as error:
        sys.exit(f"cubind.triton: {error}")


def _record(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        "cubind.triton: record", _USAGE.removeprefix("usage: "), add_help=False, allow_abbrev=False
    )
    parser.add_argument("--target")
    parser.add_argument("-o", dest="file", required=True)
    own = 0
    while arguments[own : own + 1] and arguments[own].startswith(("-o", "--target")):
        own += 1 if "=" in arguments[own] else 2
    options = parser.parse_args(arguments[:own])
    options.file = os.path.abspath(options.file)  # the program may go to another folder
    program = checked(arguments[own:], _NAME, _USAGE)
    # A kernel that is in Triton's cache already would not be asked for.
    with tempfile.TemporaryDirectory(prefix="cubind-record-") as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        try:
            if options.target is None:
                _autoload.begin(options.file)
                with _ending():
                    install(record=options.file)
                run(program)
            else:
                _record_for(options.target, options.file, program)
        except RuntimeError as error:
            if "active drivers" not in str(error):  # Triton's words
                raise
            sys.exit(
                f"cubind.triton: Triton finds no GPU here ({error}): record where there is one, or for its architecture: "
                "record --target sm_90"
            )
        finally:
            _report(options.file, "" if options.target else "; without a GPU: record --target sm_90")


def _record_for(architecture: str, file: str, program: list[str]) -> None:
    """Without a GPU."""
    from . import _stand_in
    from ._recording import Recorder

    with _ending():
        capability = _stand_in.capability_of(architecture)
        recorder = Recorder(file, {0: _stand_in.device_of(capability)})
        _stand_in.start(capability)
    with _stand_in.recording(capability, lambda spec: recorder.add(spec, 0)) as refused:
        try:
            run(program)
        except Exception:
            traceback.print_exc()
            sys.exit(
                "cubind.triton: the program ended with this error; what it asked for until then is recorded. If it needs a GPU (tensors "
                "have no contents here), record it where there is one, or call the kernels by sizes alone"
            )
        finally:
            for name, reason in refused.items():
                print(printable(f"cubind.triton: {name} is not recorded: it {reason}"), file=sys.stderr)


def _report(file: str, hint: str) -> None:
    """What became of the file. An empty one is removed."""
    if not os.path.exists(file):
        return
    if os.path.getsize(file) > 0:
        said = f"{file} has the kernels: `python -m cubind.triton bake {shlex.quote(file)}` has a daemon compile them"
    else:
        os.remove(file)
        said = f"{file} is not written: no kernel was asked for{hint}"
    print(f"cubind.triton: {said}", file=sys.stderr)


def _bake(arguments: list[str]) -> None:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        refuse(_USAGE)
    from .. import connect
    from ._baking import bake
    from ._recording import read

    with _ending():
        entries = list(read(arguments[0]))
        if not entries:
            sys.exit(f"cubind.triton: {arguments[0]}: has no kernel: the recorded program asked for none")
        with connect() as client:
            baked = bake(client, entries)
            print(f"{baked.kernels} kernels can be served by {client.address}")
    for name, cause in baked.failed.items():
        print(printable(f"cubind.triton: {name} is not compiled: {cause}"), file=sys.stderr)
    sys.exit(1 if baked.failed else 0)


if __name__ == "__main__":
    main()
