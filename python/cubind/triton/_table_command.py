"""python -m cubind.triton table: the files of tuned configurations that projects read."""

from __future__ import annotations

import argparse
import os
import pathlib
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .. import _wire
from ..errors import CubindError, FailedPreconditionError, InvalidArgumentError
from . import _project_file, _reported

if TYPE_CHECKING:
    from ..client import Client
    from ._rows import Row, Rows
    from .table import Table, Values

_TIMEOUT = 600.0  # seconds for a row


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says; the exit code. Errors go to standard error."""
    try:
        return _run(arguments)
    except BrokenPipeError:  # of a reader that has ended, as in `| head`
        # Python's own last flush would fail too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except (CubindError, OSError) as error:
        print(f"cubind.triton: {error}", file=sys.stderr)
        return 1


def _run(arguments: Sequence[str]) -> int:
    try:
        options = _parser().parse_args(arguments)
        return options.run(options)
    finally:
        sys.stdout.flush()


# ---- The command line ----


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m cubind.triton table")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    tune = _of_table(commands, "tune", "measure the rows on this GPU, and write the project's file", _write)
    export = _of_table(commands, "export", "write the file from what the daemon has measured", _write)
    export.set_defaults(tunes=False)
    export.add_argument("--device", metavar="LABEL", help="a GPU of the daemon's; default: this machine's")
    for command in (tune, export):
        command.add_argument("-o", "--output", default=".", metavar="FOLDER", help="default: this folder")
        command.add_argument("--reported", metavar="FILE", help="more candidates, of table import")
    check = _of_table(commands, "check", "compare a file's rows with the defaults on this GPU", _check)
    check.add_argument("file", metavar="FILE", help="as the project reads it")
    for command in (tune, check):
        command.add_argument("--timeout", type=float, help=f"seconds per row; default: {_TIMEOUT:g}")
    imports = commands.add_parser(
        "import", help="gather the configurations of other tuners' files, for tune --reported"
    )
    imports.add_argument(
        "files", nargs="+", metavar="FILE", help="*.autotune.json, Kernel Tuner's cache, T4, a project's"
    )
    imports.add_argument("-o", "--output", required=True, metavar="FILE", help="what is written")
    imports.set_defaults(run=_import)
    return parser


def _of_table(
    commands: Any, name: str, what: str, run: Callable[[argparse.Namespace, Table, Rows], int]
) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=what)
    command.add_argument("table", metavar="TABLE", help="moe_table.py, or package.module:name")
    command.add_argument("--rows", type=_sizes, metavar="SIZES", help="1,2,4: instead of the table's")
    command.set_defaults(run=_with_rows, run_rows=run, tunes=True, timeout=_TIMEOUT)
    return command


def _sizes(text: str) -> list[int]:
    sizes = [int(size) for size in text.split(",") if size.isdecimal()]
    if len(sizes) != text.count(",") + 1 or 0 in sizes:
        raise argparse.ArgumentTypeError(f'"{text}" is no list of sizes like 1,16,64')
    return sizes


# ---- tune and export ----


def _with_rows(options: argparse.Namespace) -> int:
    from .. import connect
    from . import table
    from ._rows import Rows

    sys.path.insert(0, os.getcwd())
    found = table.load(options.table)
    here = None if getattr(options, "device", None) else _gpu_here()
    if options.tunes and here is None:
        why = "Triton finds no GPU here: run this on a machine that has the GPU of the file"
        raise FailedPreconditionError(why, "device")
    with connect() as client:
        label = None
        if here is None:
            label, here = _gpu_of_daemon(client, options.device)
        options.gpu = here["name"]
        rows = Rows(found, client, options.tunes, options.timeout, label)
        return options.run_rows(options, found, rows)


def _gpu_here() -> dict[str, Any] | None:
    """Its facts."""
    from .. import _core
    from . import _triton_private as private

    try:
        facts: dict[str, Any] = _core.gpu(private.current_device())["facts"]
    except RuntimeError:  # Triton has no driver
        return None
    return facts


def _gpu_of_daemon(client: Client, label: str | None) -> tuple[str, dict[str, Any]]:
    """A GPU that the daemon has measured on, by its label, with its facts; Triton takes it for this machine's
    from now on. None: the only one."""
    from . import _stand_in

    devices = [each for each in client.status()["devices"] if each["records"] > each["shipped_records"]]
    named = [each for each in devices if label in (None, each["label"])]
    if len(named) != 1:
        known = ", ".join(sorted(each["label"] for each in devices))
        raise FailedPreconditionError(
            f"name one GPU by --device: the daemon has measured on {known}"
            if known
            else "the daemon has measured nothing: run `table tune` first, or `cubindctl import` its table",
            "device",
        )
    facts = named[0]["facts"]
    _stand_in.start(10 * facts["cc_major"] + facts["cc_minor"])
    return named[0]["label"], facts


def _write(options: argparse.Namespace, table: Table, rows: Rows) -> int:
    path = _path(options.output, table, options.gpu)
    reported = [] if options.reported is None else _reported.read(options.reported)
    print(f"{table.size:>8}  DEFAULT_US  TUNED_US  INTERVAL_US         GAIN  CONFIGURATION")
    found = []
    for size in options.rows or table.rows:
        candidates = [*table.candidates_of(size), *(each.values for each in reported)]
        row = rows.row(size, table.default(size), candidates)
        print(_line(row), flush=True)
        found.append(row)
    written = written_rows(found, table.nearest)
    if written:
        path.parent.mkdir(parents=True, exist_ok=True)
        _project_file.write(path, written)
        print(f"{path}: {len(written)} rows, {sum(row.wins for row in found)} of them tuned")
    else:
        print("no row wins: no file is written, the project launches its defaults")
    return int(any(row.why for row in found))


def written_rows(rows: Iterable[Row], nearest: bool) -> dict[int, Values]:
    """What the file has: the rows that win. nearest: a project takes the row of the nearest size, so that the
    others hold the default."""
    rows = list(rows)
    if not any(row.wins for row in rows):
        return {}
    return {
        row.size: row.best if row.wins and row.best is not None else row.first
        for row in rows
        if row.wins or nearest
    }


def _path(folder: str, table: Table, gpu: str) -> pathlib.Path:
    import triton

    name = table.file.replace("{device_name}", gpu.replace(" ", "_"))
    name = name.replace("{triton}", triton.__version__.replace(".", "_"))
    path = pathlib.PurePath(name)
    if path.is_absolute() or ".." in path.parts:
        raise InvalidArgumentError(f'"{name}" leaves the folder of --output', "file")
    return pathlib.Path(folder, path)


def _line(row: Row) -> str:
    if row.first_time is None or row.best_time is None or row.best is None:
        return f"{row.size:>8}  not measured: {row.why}"
    default = f"{row.size:>8}  {row.first_time.us:>10.2f}"
    if not row.wins:
        return f"{default}         -  -                    tie  the default stays"
    interval = "-"
    if row.best_time.interval_us is not None:
        low, high = row.best_time.interval_us
        interval = f"{low:.2f} to {high:.2f}"
    evidence = "" if row.best_time.evidence == "measured" else f" ({row.best_time.evidence})"
    return f"{default}  {row.best_time.us:>8.2f}  {interval:<18}  {row.gain:.2f}  {_wire.listed(row.best)}{evidence}"


# ---- check ----


def _check(options: argparse.Namespace, table: Table, rows: Rows) -> int:
    path = options.file
    file = _project_file.read(path)
    if missing := [size for size in options.rows or () if size not in file]:
        raise InvalidArgumentError("has no such row", f"{path} /{missing[0]}")
    found = []
    for size in options.rows or file:
        if file[size] == table.default(size):
            print(f"{path} /{size}: is the default")
            continue
        row = rows.row(size, file[size], [table.default(size)])
        print(f"{path} /{size}: {_verdict(row)}", flush=True)
        found.append(row)
    return int(any(row.wins or row.why for row in found))


def _verdict(row: Row) -> str:
    if row.first_time is None or row.best_time is None:
        return f"not measured: {row.why}"
    if row.wins:
        return f"loses: {row.first_time.us:.2f} us, the default takes {row.best_time.us:.2f} us"
    return f"holds: {row.first_time.us:.2f} us, the default is not faster"


# ---- import ----


def _import(options: argparse.Namespace) -> int:
    found = [each for path in options.files for each in _reported.read_others(path)]
    _reported.write(options.output, found)
    timed = sum(each.time_us is not None for each in found)
    print(f"{options.output}: {len(found)} configurations, {timed} of them with a reported time")
    return 0
