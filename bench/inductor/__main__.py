"""Starts of a job with a compiled model: Inductor alone, and with its choices from a daemon.

    python3 bench/inductor [--layers 2] [--rounds 2] [--turns 40] [--work DIR] --output FILE

Two nodes of two processes each, with a home, a temporary folder and caches of their own, on the GPUs of this
machine, compile a Llama (hidden size 1024) with max-autotune. Starts:

    first      empty nodes; for cubind an empty store too
    second     empty nodes again, with the daemon of the first start (cubind alone)
    copied     the nodes as the first start left them; both sides in turn, `--rounds` times

Then a process of each of torch, cubind's first and its second start runs steps on one GPU, in turn.

Needs the package `cubind` with its programs, torch 2.11 or later, transformers and a GPU. Exit status 1:
cubind's second start measured something or its ranks chose differently, it was not 1.5 times as fast as
torch's first, a start with copied caches was more than 5 % slower than torch's, or a step of the second start
more than 1 % slower.
"""

import concurrent.futures
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from cubind import programs

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
import node
from daemon import Daemon
from gpus import visible_gpus

HERE = pathlib.Path(__file__).parent
NODES, RANKS = 2, 4
COPIED = "home", "tmp"


class Bench:
    """The starts of one command, and the document that they fill."""

    def __init__(self, arguments, work, address):
        self.arguments, self.work, self.address = arguments, work, address
        self.gpus = visible_gpus()
        self.document = {"layers": arguments.layers, "gpus": len(self.gpus), "starts": {}, "step_ms": {}}

    def start(self, side, name, copied=None):
        """One start of the job. copied: the name of the start whose caches the nodes have. The nodes are
        always in the same folders, as entries of Inductor's caches have paths."""
        print(f"bench/inductor: {name}", file=sys.stderr, flush=True)
        shutil.rmtree(self.work / "nodes", ignore_errors=True)
        nodes = [
            node.Node(self.work / "nodes" / str(i), self.gpus, first_rank=i * RANKS // NODES)
            for i in range(NODES)
        ]
        for i in range(NODES if copied else 0):
            for folder in COPIED:
                shutil.copytree(
                    self.work / copied / str(i) / folder,
                    nodes[i].folder / folder,
                    symlinks=True,
                    dirs_exist_ok=True,
                )
        command = node.python(*self.program(side), HERE / "rank.py", str(self.arguments.layers))
        environment = {"WORLD_SIZE": RANKS, "CUBIND_ADDRESS": self.address}
        with concurrent.futures.ThreadPoolExecutor() as pool:
            runs = [
                pool.submit(one.run, command, RANKS // NODES, environment, self.arguments.limit)
                for one in nodes
            ]
            ranks = [rank for run in runs for rank in run.result()]
        self.document["starts"].setdefault(name, []).append(ranks)
        self.write()
        print(line(name, ranks), flush=True)
        return self.work / "nodes"

    def program(self, side):
        return ["-m", "cubind.inductor"] if side == "cubind" else []

    def keep(self, name):
        shutil.rmtree(self.work / name, ignore_errors=True)
        (self.work / "nodes").rename(self.work / name)

    def steps(self, kept):
        """Medians of the turns of a process of each kept start."""
        times = {name: [] for name in kept}
        processes = {name: self.process(name, side) for name, side in kept.items()}
        try:
            for turn in range(self.arguments.turns):
                for name in [*kept][:: 1 if turn % 2 == 0 else -1]:
                    print("go", file=processes[name].stdin, flush=True)
                    times[name].append(float(processes[name].stdout.readline()))
        finally:
            for process in processes.values():
                process.kill()
                process.wait()
        self.document["step_ms"] = times
        self.write()

    def process(self, name, side):
        one = node.Node(self.work / f"steps_{name}", self.gpus)
        for folder in COPIED:
            shutil.copytree(
                self.work / name / "0" / folder, one.folder / folder, symlinks=True, dirs_exist_ok=True
            )
        process = subprocess.Popen(
            node.python(
                *self.program(side), HERE / "rank.py", str(self.arguments.layers), "--steps", one.folder
            ),
            env=one.environment(0, 1, {"CUBIND_ADDRESS": self.address}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if not any(said.strip() == "ready" for said in process.stdout):
            raise RuntimeError(f"the process for the steps of {name} ended")
        return process

    def run(self):
        self.start("torch", "torch_first")
        self.keep("torch_first")
        for name in ("cubind_first", "cubind_second"):
            self.start("cubind", name)
            self.keep(name)
        if self.arguments.turns:
            self.steps({"torch_first": "torch", "cubind_first": "cubind", "cubind_second": "cubind"})
        for _ in range(self.arguments.rounds):
            self.start("torch", "torch_copied", copied="torch_first")
            self.start("cubind", "cubind_copied", copied="cubind_first")

    def write(self):
        self.document["figures"] = figures(self.document)
        command_line.write(self.document, self.arguments.output)


def mean_start(runs):
    return statistics.mean(rank["marks_s"]["first_step"] for ranks in runs for rank in ranks)


def differing(ranks):
    """How many choices not all ranks have made."""
    made = [{*rank["chosen"], *map(str, rank["kernels"].items())} for rank in ranks]
    return len(set.union(*made) - set.intersection(*made))


def line(name, ranks):
    seconds = ", ".join(f"{rank['marks_s']['first_step']:.1f}" for rank in ranks)
    candidates = ", ".join(str(rank["candidates"]) for rank in ranks)
    return (
        f"{name}: first step after {seconds} s; candidates {candidates}; differing choices {differing(ranks)}"
    )


def figures(document):
    """Ratios above 1: cubind is slower."""
    starts, steps = document["starts"], document["step_ms"]

    def ratio(name, base):
        if name in starts and base in starts:
            return mean_start(starts[name]) / mean_start(starts[base])
        return None

    def step_ratio(name, base):
        if steps.get(name):
            return statistics.median(a / b for a, b in zip(steps[name], steps[base], strict=True))
        return None

    second = [rank for ranks in starts.get("cubind_second", []) for rank in ranks]
    return {
        "second_start": ratio("cubind_second", "torch_first"),
        "copied_caches": ratio("cubind_copied", "torch_copied"),
        "step": step_ratio("cubind_second", "torch_first"),
        "step_over_measured": step_ratio("cubind_second", "cubind_first"),
        "second_measured": sum(rank["candidates"] + rank["configurations"] for rank in second),
        "second_differing": sum(map(differing, starts.get("cubind_second", []))),
        "torch_differing": sum(map(differing, starts.get("torch_first", []))),
    }


def faults(found):
    return [
        *(["the second start measured"] if found["second_measured"] else []),
        *(["ranks of the second start chose differently"] if found["second_differing"] else []),
        *(
            f"{name}: {found[name]:.3f} of torch's, at most {limit:.3f} is expected"
            for name, limit in (("second_start", 1 / 1.5), ("copied_caches", 1.05), ("step", 1.01))
            if found[name] is not None and found[name] > limit
        ),
    ]


def read_arguments():
    parser = command_line.make_parser(__doc__, required=["output"], optional=["commit"])
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2, help="starts of each side with copied caches")
    parser.add_argument("--turns", type=int, default=40, help="of 100 steps; 0: none")
    parser.add_argument("--limit", type=float, default=180, help="seconds of one start")
    parser.add_argument("--work", type=pathlib.Path, help="folder of the nodes; default: a temporary one")
    return parser.parse_args()


def main():
    arguments = read_arguments()
    with (
        tempfile.TemporaryDirectory(prefix="cubind-inductor.") as folder,
        Daemon(programs.program("cubind").parent) as daemon,
    ):
        work = (arguments.work or pathlib.Path(folder)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        bench = Bench(arguments, work, daemon.address)
        try:
            bench.run()
        finally:
            # Opens the GPU: after the processes that measure.
            from machine import toolchain  # noqa: PLC0415

            bench.document["toolchain"] = toolchain(arguments.commit)
            bench.write()
    print(json.dumps(bench.document["figures"], indent=1))
    if failed := faults(bench.document["figures"]):
        sys.exit("\n".join(failed))


if __name__ == "__main__":
    main()
