"""python -m cubind.torch compare: the records of a daemon against torch's own functions."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import torch

from .. import connect
from .._wire import listed
from ..errors import CubindError
from ._comparing import QUESTION, compare
from ._operator import operators
from ._variants import Need, settings

_POLICY = "cold/3,stream"  # what operators ask for


def main(arguments: list[str] | None = None) -> int:
    """Prints a line for each record. Returns the process's exit code."""
    parser = argparse.ArgumentParser(prog="python -m cubind.torch")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser(
        "compare",
        help="compare what was tuned for this GPU with torch's own functions, for half a second each",
    )
    command.add_argument("--kernel", metavar="NAME", help="only records of this kernel")
    command.add_argument(
        "--device", metavar="INDEX", type=int, default=0, help="the GPU (default: %(default)s)"
    )
    command.add_argument("--address", help="the daemon's (default: as cubind.connect() finds it)")
    given = parser.parse_args(arguments)
    try:
        if given.address:
            settings.use(connect(given.address))
        return _compare(given.kernel, given.device)
    except CubindError as error:
        print(f"cubind: {error}", file=sys.stderr)
        return 1


def _compare(kernel: str | None, device: int) -> int:
    if not torch.cuda.is_available():
        print("cubind: torch sees no GPU here: kernels cannot be compared", file=sys.stderr)
        return 1
    torch.cuda.set_device(device)
    known = {operator.name: operator for operator in operators()}
    compared = 0
    for record in settings.connected().table(kernel):
        operator = known.get(record["kernel"])
        if operator is None or not _is_asked_for(record):
            continue
        need = operator.need_of(problem_of(record), device)
        compared += need is not None and _print(need, record["device"])
    if compared == 0:
        print(
            "cubind: no record of an operator's kernel is for this GPU: `cubindctl tune` measures some",
            file=sys.stderr,
        )
    return 0 if compared else 1


def _is_asked_for(record: dict[str, Any]) -> bool:
    return record["policy"] == _POLICY and record["numerics"] == "tolerance" and not record.get("namespace")


def problem_of(record: dict[str, Any]) -> dict[str, int | str]:
    """As a client is asked."""
    problem = record["problem"]
    return {**problem["dims"], **problem["types"], **problem.get("flags", {})}


# False: the record is another GPU's.
def _print(need: Need, device: str) -> bool:
    operator, key, dims = need
    problem = operator.problem(key, dims)
    if settings.connected().ask(operator.name, problem, QUESTION, gpu=key[1]).answer.device != device:
        return False
    try:
        found: object = compare(need) or "cannot be compared"
    except (CubindError, torch.OutOfMemoryError) as error:
        found = error
    print(f"{operator.name} {listed(problem)}: {found}", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
