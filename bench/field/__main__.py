"""Triton programs of others, as they are, under `python -m cubind.triton`.

    python3 bench/field [--tutorials DIR] [--fla DIR] [--liger DIR] [--path DIR ...] [--seconds 540]
        [--limit 120] --output FILE

DIR are folders outside this tree: Triton's python/tutorials, flash-linear-attention, Liger-Kernel. The draw:

    tutorials  softmax, matmul, layer norm, fused attention and grouped GEMM, as programs; one that imports
               pytest also as its tests
    fla        tests/ops/test_NAME.py of the first six NAMEs in alphabetical order with a fla/layers/NAME.py
    liger      test/transformers/test_NAME.py in alphabetical order, but for whole models, the package itself
               and backends that are not Triton

Each suite has a GPU of its own if there are enough; on one GPU they share the time evenly. Its programs run
one after another, with a daemon that starts from an empty store. A program that takes longer than its limit
is cut: interrupted, with what it has done until then. Of a program that fails, what failed is run once more
without cubind; what fails there too is not cubind's fault.

FILE gets the tests passed, failed and skipped, the autotuned kernels met, those served from tuned records,
and those that stayed Triton's own, if only for one call, with the reason. Programs that FILE has already are
not run again.

Needs the package `cubind` with its programs, torch, Triton, pytest, matplotlib, pandas, what the programs
import (--path: folders for PYTHONPATH), and a GPU. Exit status 1: something fails under cubind alone, above
20 % of the autotuned kernels stayed Triton's own, or none was met.
"""

import concurrent.futures
import json
import os
import pathlib
import sys
import tempfile
import threading
import time

import draw
import outcome
import process
from cubind import programs

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
from daemon import Daemon
from gpus import visible_gpus

SHORTEST_S = 15  # a program that has less is not begun
PYTEST_DONE = (0, 1, 2, 5)  # all passed, some failed, interrupted or not collected, none found; else it died
TAIL = 3000  # characters of the output of one that fails


class Field:
    """The programs of one command, and the document that they fill."""

    def __init__(self, arguments, document, work):
        self.arguments, self.document, self.work = arguments, document, work
        self.until = time.monotonic() + arguments.seconds
        self.lock = threading.Lock()  # guards the document

    def run(self, suites, gpus):
        """suites: [(name, programs)]."""
        known = {(run["suite"], run["program"]) for run in self.document["programs"]}
        self.document |= {"gpus": len(gpus), "left_out": [], "daemon_logs": {}}
        new = [
            (suite, [each for each in drawn if (suite, each.name) not in known]) for suite, drawn in suites
        ]
        lanes = max(1, min(len(gpus), len(new)))
        with concurrent.futures.ThreadPoolExecutor(lanes) as threads:
            runs = [
                threads.submit(Lane(self, gpus[number : number + 1]).run, new[number::lanes])
                for number in range(lanes)
            ]
        for run in runs:
            run.result()

    def add(self, run):
        with self.lock:
            self.document["programs"].append(run)
            self.write()
        print(outcome.line(run), flush=True)

    def add_left_out(self, program):
        with self.lock:
            self.document["left_out"].append(f"{program.suite} {program.name}")

    def add_log(self, gpu, log):
        with self.lock:
            self.document["daemon_logs"][gpu] = log.splitlines()

    def write(self):
        self.document["summary"] = outcome.summary(self.document)
        command_line.write(self.document, self.arguments.output)


class Lane:
    """Suites one after another on one GPU, with its daemon. gpu: a list of it, empty without one."""

    def __init__(self, field, gpu):
        self.field, self.gpu = field, gpu
        self.until = field.until

    def run(self, suites):
        options = ["--triton-python", sys.executable, *(["--gpus", *self.gpu] if self.gpu else [])]
        with Daemon(programs.program("cubind").parent, options) as daemon:
            try:
                for number, (_, drawn) in enumerate(suites):
                    left = self.field.until - time.monotonic()
                    self.until = time.monotonic() + left / (len(suites) - number)
                    self.run_suite(drawn, daemon)
            finally:
                self.field.add_log(",".join(self.gpu), daemon.log_tail(10_000))

    def run_suite(self, drawn, daemon):
        for program in drawn:
            if self.left() < SHORTEST_S:
                self.field.add_left_out(program)
            else:
                self.field.add(self.measure(program, daemon))

    def left(self):
        """Seconds that a program may take now."""
        return min(self.field.arguments.limit, self.until - time.monotonic() - process.GRACE_S)

    def measure(self, program, daemon):
        environment = {"CUBIND_ADDRESS": daemon.address, "CUBIND_REPORT": "1"}
        run, output = self.attempt(program, ["-m", "cubind.triton"], environment)
        run |= {"suite": program.suite, "program": program.name}
        run["kernels"] = outcome.kernels(output, program.file.stem)
        if run["failed"]:
            run["output"] = output[-TAIL:]
            if self.left() >= SHORTEST_S:
                named = () if "" in run["failed"] else tuple(run["failed"])
                run["without"], output = self.attempt(program, [], {"CUBIND": "0"}, named)
                run["without"]["output"] = output[-TAIL:]
        return run

    def attempt(self, program, before, more, tests=()):
        """({"tests", "failed", "seconds", "is_cut"}, what it printed)."""
        start = time.monotonic()
        with tempfile.TemporaryDirectory(dir=self.field.work) as folder:
            results = pathlib.Path(folder, "results.xml")
            command = [sys.executable, *before, *program.arguments(results, tests)]
            environment = os.environ | self.environment(program, "cubind" if before else "triton") | more
            ended = process.run(command, environment, program.folder or folder, self.left())
            counts, failed = ended.as_test()
            if results.exists() and (ended.code in PYTEST_DONE or ended.is_cut):
                counts, failed = outcome.tests(results, program.file.stem)
        run = {"tests": counts, "failed": failed, "seconds": time.monotonic() - start, "is_cut": ended.is_cut}
        return run, ended.output

    def environment(self, program, side):
        paths = [*program.paths, *self.field.arguments.path, os.environ.get("PYTHONPATH", "")]
        return {
            "PYTHONPATH": os.pathsep.join(str(path) for path in paths if str(path)),
            "TRITON_CACHE_DIR": str(self.field.work / f"{side}-{program.suite}"),
            "CUDA_VISIBLE_DEVICES": ",".join(self.gpu),
            "MPLBACKEND": "Agg",
            "PYTHONUNBUFFERED": "1",
        }


def read_arguments():
    parser = command_line.make_parser(__doc__, required=["output"], optional=["commit"])
    for suite in draw.SUITES:
        parser.add_argument(f"--{suite}", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--path", type=pathlib.Path, nargs="+", default=[], metavar="DIR")
    parser.add_argument("--seconds", type=float, default=540, help="in all; default: 540")
    parser.add_argument("--limit", type=float, default=120, help="seconds of a program; default: 120")
    arguments = parser.parse_args()
    arguments.path = [folder.resolve() for folder in arguments.path]
    arguments.suites = []
    for suite, of in draw.SUITES.items():
        if (folder := getattr(arguments, suite)) is not None:
            try:
                arguments.suites.append((suite, of(folder.resolve())))
            except OSError as error:
                parser.error(f"--{suite}: {error}")
            if not arguments.suites[-1][1]:
                parser.error(f"--{suite}: {folder} has none of the files that are drawn. Is it a checkout?")
    if not arguments.suites:
        parser.error("name at least one of --tutorials, --fla and --liger")
    return arguments


def main():
    arguments = read_arguments()
    file = arguments.output
    document = json.loads(file.read_text()) if file.exists() else {"programs": []}
    with tempfile.TemporaryDirectory(prefix="cubind-field.") as work:
        field = Field(arguments, document, pathlib.Path(work))
        try:
            field.run(arguments.suites, visible_gpus())
        finally:
            field.write()
    from machine import toolchain  # noqa: PLC0415  opens the GPU: after the programs

    document["toolchain"] = toolchain(arguments.commit)
    field.write()
    print(outcome.table(document))
    if document["summary"]["faults"]:
        sys.exit("\n".join(document["summary"]["faults"]))


if __name__ == "__main__":
    main()
