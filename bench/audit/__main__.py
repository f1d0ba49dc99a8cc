"""`cubindctl audit` of the shipped kernels, three shapes each.

    python3 bench/audit [--kernels NAME...] [--seconds 400] --output FILE

The shapes of a kernel are the first and the last of bench/kernels and the one that no tile divides; where
these are fewer than three, the first with half its first dim comes in. Each kernel is tuned from an empty
store, compared with torch's own functions and audited. Kernels that the seconds do not suffice for are listed
as left out. Prints each check that fails. Needs the package `cubind` with its programs, torch and a GPU.
Exit status 1: a kernel could not be tuned.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from cubind import programs

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
sys.path.append(str(pathlib.Path(__file__).parents[1] / "kernels"))
import command_line
import shapes
from daemon import Daemon


def problems_of(kernel):
    every = [*shapes.TABLE.get(kernel, []), *shapes.MORE.get(kernel, [])]
    odd = shapes.ONE_OF_EACH.get(kernel)
    if odd is None:
        return []
    first = every[0] if every else (1 << 26,)
    halved = (first[0] // 2, *first[1:])
    chosen = dict.fromkeys((first, every[-1] if every else first, odd, halved))
    return [shapes.problem(kernel, sizes) for sizes in [*chosen][:3]]


def audit(daemon, kernel):
    """The records of the kernel with their checks."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as listed:
        for problem in problems_of(kernel):
            print(json.dumps({"kernel": kernel, **problem}), file=listed, flush=True)
        daemon.call("tune", "--shapes", listed.name, seconds=240)
    # Without an operator of cubind.torch there is nothing to compare, which the audit says.
    subprocess.run(
        [sys.executable, "-m", "cubind.torch", "compare", "--kernel", kernel],
        env=daemon.environment,
        stdout=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    command = [daemon.bin / "cubindctl", "audit", kernel, "--json"]
    run = subprocess.run(command, env=daemon.environment, capture_output=True, text=True, check=False)
    if not run.stdout:
        raise RuntimeError(f"cubindctl audit {kernel}: {run.stderr}")
    return json.loads(run.stdout)["records"]


def print_failing(record):
    for check in record["checks"]:
        if check["verdict"] == "fail":
            print(
                f"{record['kernel']} {record['problem']}: {check['check']}: {check['evidence']}", flush=True
            )


def main():
    parser = command_line.make_parser(__doc__, required=["output"], optional=["commit"])
    parser.add_argument("--kernels", nargs="+", metavar="NAME", help="default: all")
    parser.add_argument("--seconds", type=float, default=400)
    arguments = parser.parse_args()
    end, document = time.monotonic() + arguments.seconds, {"records": [], "errors": {}, "left_out": []}
    with Daemon(programs.program("cubind").parent) as daemon:
        os.environ["CUBIND_ADDRESS"] = daemon.address
        for kernel in arguments.kernels or daemon.kernels():
            if time.monotonic() > end:
                document["left_out"].append(kernel)
                continue
            try:
                records = audit(daemon, kernel)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                document["errors"][kernel] = str(error)
                continue
            document["records"] += records
            for record in records:
                print_failing(record)
            command_line.write(document, arguments.output)
    from machine import toolchain  # noqa: PLC0415  opens the GPU: after the processes that measure

    document["toolchain"] = toolchain(arguments.commit)
    command_line.write(document, arguments.output)
    print(f"{len(document['records'])} records; left out: {', '.join(document['left_out']) or 'none'}")
    if document["errors"]:
        sys.exit("\n".join(f"{kernel}: {error}" for kernel, error in document["errors"].items()))


if __name__ == "__main__":
    main()
