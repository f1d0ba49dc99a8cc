"""A job of eight processes with Triton kernels on a first node, on a new one, and after a restart.

    python3 bench/second_pod [--fla DIR] [--processes 8] [--sides triton shared cubind] [--repeats 2]
        [--work DIR] --output FILE

Trains an unedited model of flash-linear-attention: DIR holds its package `fla` and what it needs, if they are
not installed. A node is an empty home, temporary folder and Triton cache; its processes share the GPUs of
this machine. Sides:

    triton     Triton as shipped
    shared     TRITON_CACHE_DIR on a folder that all nodes share, TRITON_CACHE_AUTOTUNING=1
    cubind     python -m cubind.triton, with a daemon that all nodes reach

Parts: `first` is the first node. `new` is a new node and `warm` the same job again on it, in turn. `lost` is
a new node whose daemon is killed before step 50 (cubind alone). `judge` measures all configurations of each
autotuned kernel and key by the oracle of bench/repeats, and how far the choices of `new` are from the best.
What FILE has of other sides and parts is kept, so that they may be measured one by one; with --work they also
share the folders. The new nodes of cubind come in one command with its first.

Needs the package `cubind` with its programs, torch, Triton, transformers and a GPU. Exit status 1: on a new
node cubind compiled or tuned, was more than 10 % slower to the first step than a warm restart, ranks ran
different configurations, a choice is more than 1 % from the best or fewer than 20 were made, a step after the
kill took 50 ms more than the slowest before, or losses differ.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import verdict
from cubind import programs

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
import node
from daemon import Daemon
from gpus import visible_gpus

HERE = pathlib.Path(__file__).parent
PARTS = (*verdict.PARTS, "judge")
KILLED_AT = 50
SETTLED_S = 180  # that the daemon has for what it still compiles behind the first node
IMPORTS = "import torch, triton, transformers, fla.models, cubind.triton"


class Bench:
    """The nodes of one command, and the document that they fill."""

    def __init__(self, arguments, document, work):
        self.arguments, self.document, self.work = arguments, document, work
        self.gpus = visible_gpus()
        paths = [*map(str, arguments.fla), os.environ.get("PYTHONPATH", "")]
        self.environment = {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}

    def node(self, side):
        return node.Node(self.work / f"{side}-{time.time_ns()}", self.gpus)

    def job(self, node_, side, part, steps, more, at_pause=None):
        """One run of the job, which is kept."""
        print(f"bench/second_pod: {side}, {part}", file=sys.stderr, flush=True)
        program = ["-m", "cubind.triton"] if side == "cubind" else []
        pause = KILLED_AT if at_pause else 0
        command = node.python(*program, HERE / "rank.py", self.arguments.model, str(steps), str(pause))
        run = node_.run(
            command,
            self.arguments.processes,
            self.environment | more,
            self.arguments.limit,
            at_pause,
        )
        self.document["sides"].setdefault(side, {}).setdefault(part, []).append(run)
        self.write()
        print(verdict.line(side, part, verdict.figures_of({part: [run]}, {}, KILLED_AT)[part]), flush=True)

    def write(self):
        self.document["summary"] = verdict.summary(self.document)
        command_line.write(self.document, self.arguments.output)

    def parts(self, side):
        """Those that are asked for, and forgotten from earlier commands."""
        asked = {part for part in self.arguments.parts if part in verdict.PARTS}
        asked |= {"new"} if "warm" in asked else set()
        for part in asked:
            self.document["sides"].get(side, {}).pop(part, None)
        return asked

    def side(self, side, more, settle=lambda: None, kill=None):
        """The nodes of a side. settle: waits between the first node and the next."""
        steps, parts = self.arguments.steps, self.parts(side)
        if "first" in parts:
            first = self.node(side)
            self.job(first, side, "first", steps, more)
            first.remove()
            settle()
        for _ in range(self.arguments.repeats if "new" in parts else 0):
            new = self.node(side)
            self.job(new, side, "new", steps, more)
            if "warm" in parts:
                self.job(new, side, "warm", steps, more)
            new.remove()
        if "lost" in parts and kill is not None:
            new = self.node(side)
            self.job(new, side, "lost", self.arguments.steps_lost, more, kill)
            new.remove()

    def cubind(self):
        with Daemon(programs.program("cubind").parent, ["--triton-python", sys.executable]) as daemon:
            try:
                environment = {"CUBIND_ADDRESS": daemon.address}
                self.side("cubind", environment, lambda: self.settle(daemon), daemon.kill)
            finally:
                self.document["daemon_log"] = daemon.log_tail(20_000).splitlines()

    def settle(self, daemon):
        """Until no job is open: a second pod comes later than that."""
        start = time.monotonic()
        while jobs := json.loads(daemon.call("jobs", "--json"))["jobs"]:
            if time.monotonic() - start > SETTLED_S:
                raise RuntimeError(f"jobs are still open after {SETTLED_S} s: {jobs[:3]}")
            time.sleep(0.2)
        self.document["settled_s"] = time.monotonic() - start
        kept = ("kernel", "configurations", "created_at", "finished_at", "elapsed_ms", "stages")
        ended = json.loads(daemon.call("jobs", "--all", "--json"))["jobs"]
        self.document["tunings"] = [{name: job.get(name) for name in kept} for job in ended]

    def judge(self):
        """What Triton compiles for it, is in the shared folder where that side was measured."""
        print("bench/second_pod: judging the choices", file=sys.stderr, flush=True)
        runs = [run for parts in self.document["sides"].values() for run in parts.get("new", [])[-1:]]
        chosen = [one for run in runs for rank in run for one in rank["choices"]]
        choices, judged = self.work / "choices.json", self.work / "judged.json"
        choices.write_text(json.dumps(chosen))
        environment = os.environ | self.environment | self.shared()
        samples = str(self.arguments.samples)
        command = node.python(HERE / "regret.py", self.arguments.model, choices, judged, samples)
        try:
            subprocess.run(command, env=environment, check=True, timeout=self.arguments.limit)
        finally:  # what was judged in time is kept
            if judged.exists():
                self.document["judged"] = json.loads(judged.read_text())
                judged.unlink()
            self.write()

    def shared(self):
        return {"TRITON_CACHE_DIR": str(self.work / "shared"), "TRITON_CACHE_AUTOTUNING": "1"}

    def measure(self, side):
        if side == "shared" and "first" in self.arguments.parts:
            shutil.rmtree(self.work / "shared", ignore_errors=True)
        if side == "cubind":
            self.cubind()
        else:
            self.side(side, self.shared() if side == "shared" else {})

    def run(self):
        # Every side finds Python's files in memory.
        warm = node.python("-c", IMPORTS)
        subprocess.run(warm, env=os.environ | self.environment, check=True, stdout=subprocess.DEVNULL)
        for side in self.arguments.sides:
            self.attempt(side, lambda side=side: self.measure(side))
        if "judge" in self.arguments.parts:
            self.attempt("judge", self.judge)

    def attempt(self, what, measure):
        """The others go on without what fails."""
        self.document["errors"].pop(what, None)
        try:
            measure()
        except (RuntimeError, subprocess.SubprocessError) as error:
            print(f"{what} FAILED: {error}", flush=True)
            self.document["errors"][what] = str(error)


def read_arguments():
    parser = command_line.make_parser(__doc__, required=["output"], optional=["commit"])
    parser.add_argument(
        "--fla", type=pathlib.Path, nargs="+", default=[], metavar="DIR", help="folders for PYTHONPATH"
    )
    parser.add_argument("--model", default="DeltaNet", help="of fla.models; default: DeltaNet")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--sides", nargs="*", choices=verdict.SIDES, default=verdict.SIDES)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument(
        "--repeats", type=int, default=2, help="new nodes of a side, each with a warm restart"
    )
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--steps-lost", type=int, default=80, help="of the part lost")
    parser.add_argument(
        "--samples", type=int, default=8000, help="of a kernel and key, over all configurations"
    )
    parser.add_argument("--limit", type=float, default=600, help="seconds of one job, or of judging")
    parser.add_argument("--work", type=pathlib.Path, help="folder of the nodes; default: a temporary one")
    arguments = parser.parse_args()
    others = {"new", "warm", "lost"} & set(arguments.parts)
    if "cubind" in arguments.sides and others and "first" not in arguments.parts:
        parser.error("the other nodes of cubind come in one command with --parts first")
    if arguments.steps < 10 or arguments.steps_lost <= KILLED_AT or arguments.processes < 2:
        parser.error(f"at least 10 steps, {KILLED_AT + 1} steps of the part lost, and 2 processes")
    arguments.fla = [folder.resolve() for folder in arguments.fla]
    return arguments


def document_of(arguments):
    """With what the file has of earlier commands."""
    file = arguments.output
    return {"sides": {}, "judged": [], "errors": {}} | (json.loads(file.read_text()) if file.exists() else {})


def main():
    arguments = read_arguments()
    document = document_of(arguments)
    document |= {"model": arguments.model, "processes": arguments.processes, "killed_at": KILLED_AT}
    with tempfile.TemporaryDirectory(prefix="cubind-pod.") as folder:
        work = (arguments.work or pathlib.Path(folder)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        bench = Bench(arguments, document, work)
        document["gpus"] = len(bench.gpus)
        try:
            bench.run()
        finally:
            # Opens the GPU: after the processes that measure.
            from machine import toolchain  # noqa: PLC0415

            document["toolchain"] = toolchain(arguments.commit)
            bench.write()
            print(verdict.table(document["summary"]["sides"]))
    found = document["summary"]
    print(f"the shared folder is as good in: {', '.join(found['shared_is_as_good']) or 'nothing'}")
    failed = [f"{what} failed" for what in document["errors"]]
    if failed or found["faults"]:
        sys.exit("\n".join([*failed, *found["faults"]]))


if __name__ == "__main__":
    main()
