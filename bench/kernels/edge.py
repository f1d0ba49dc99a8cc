"""Odd problems on a GPU: a sample of configurations that covers every value of every tunable, against
float64.

    python3 bench/kernels/edge.py [--kernels NAME...] [--seconds N] --output FILE

Sizes are 1, odd, prime, one below and above the tiles, rows that no vector divides, empty problems, more than
2^31 elements; values are random, or not finite in some rows, or so large that a square overflows float16.
Each variant is run twice: outputs lie between guards, start as NaN, have to be within the spec's tolerance,
and have the same bits both times. Each kernel has a process of its own, which is started again after a case
that ended it, so that a fault stops nothing; FILE has all of it. Needs torch. Exit status 1: a case failed or
ended its process.
"""

import argparse
import contextlib
import dataclasses
import fcntl
import itertools
import json
import math
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
import torch
from compiling import Compiler
from device import device_constants
from driver import bind_plan
from operations import OPERATIONS, SHARED, TYPES, worst_excess
from spec import Spec

ROOT = pathlib.Path(__file__).parents[2]
GUARD = 64  # elements before and behind an output: a multiple of 16 bytes
COLUMNS = [
    1,
    2,
    3,
    7,
    8,
    16,
    31,
    33,
    64,
    65,
    97,
    127,
    128,
    129,
    255,
    257,
    513,
    1000,
    1024,
    1025,
    2047,
    2056,
    3072,
]
LONG_COLUMNS = [4095, 4096, 4097, 5120, 8191, 8192, 8200, 12288, 16384, 32768, 32769, 65536, 100000]
ROW_COUNTS = [97, 1, 2, 3, 7, 31, 33, 128, 129, 257, 1031, 5]
SPECIAL_COLUMNS = [1, 7, 64, 1000, 4096, 32768, 100000]


@dataclasses.dataclass(frozen=True)
class Case:
    problem: dict
    values: str
    configuration: dict


def problems():
    """(problem, kind of values)"""
    result = []
    for index, D in enumerate(COLUMNS + LONG_COLUMNS):
        for turn, T in enumerate(TYPES):
            N = ROW_COUNTS[(3 * index + turn) % len(ROW_COUNTS)]
            result.append(({"N": N if D < 16384 else min(N, 33), "D": D, "T": T}, "random"))
    for T in TYPES:
        result += [({"N": 6, "D": D, "T": T}, "special") for D in SPECIAL_COLUMNS]
        result += [({"N": N, "D": D, "T": T}, "large") for N, D in ((5, 1024), (3, 4097), (130, 40))]
        result += [({"N": 0, "D": D, "T": T}, "random") for D in (1, 128, 4096, 32768)]
        result += [
            ({"N": N, "D": D, "T": T}, "random") for N, D in ((100003, 24), (65536, 65), (100000, 128))
        ]
    result.append(({"N": (1 << 21) + 17, "D": 1032, "T": "bf16"}, "random"))
    return result


def cases(spec, each):
    """The default of each problem and `each` more, those first whose values have been seen least. Flags take
    turns."""
    draw, seen, result = random.Random(1), set(), []
    flags = spec.fields["problem"].get("flags", {})
    settings = [dict(zip(flags, one, strict=True)) for one in itertools.product((0, 1), repeat=len(flags))]
    least = spec.least("N")
    taken = [one for one in problems() if one[0]["N"] >= least]
    for (sizes, values), setting in zip(taken, itertools.cycle(settings)):
        problem = {**sizes, **setting}
        chosen = spec.sample(problem, each, draw, seen)
        result += [Case(problem, values, configuration) for configuration in chosen]
    return result, spec.uncovered(seen)


def make_special(inputs):
    """Rows with one NaN, +inf, -inf among others, nothing but -inf, zeros, and a tiny and a huge value."""
    for name, value in inputs.items():
        if name not in SHARED and value.dim() == 2:
            value[0, value.shape[1] // 2] = math.nan
            value[1, -1] = math.inf
            value[2, 0] = -math.inf
            value[3] = -math.inf
            value[4] = 0.0
            break


def make_large(inputs):
    """Values whose squares overflow float16, in half of the rows. The factor is returned."""
    for name, value in inputs.items():
        if name not in SHARED and value.dim() == 2:
            factor = 60000 / value.abs().max().item()
            value[::2] = (value[::2].float() * factor).to(value.dtype)
            return factor
    return 1.0


def make_inputs(operation, case):
    """(inputs, factor of their values)"""
    seed = json.dumps([case.problem, case.values])
    torch.manual_seed(random.Random(seed).randrange(1 << 40))
    inputs = operation.inputs_of(case.problem)
    if case.values == "special":
        make_special(inputs)
    return inputs, make_large(inputs) if case.values == "large" else 1.0


class Guarded:
    """A buffer of NaN between two guards."""

    def __init__(self, like):
        self.whole = torch.empty(like.numel() + 2 * GUARD, dtype=like.dtype, device="cuda")
        self.poison()
        self.tensor = self.whole[GUARD : GUARD + like.numel()].view(like.shape)

    def poison(self):
        self.whole.fill_(float("nan"))
        self.whole[:GUARD] = 3.0
        self.whole[self.whole.numel() - GUARD :] = 3.0

    def is_whole(self):
        ends = torch.cat([self.whole[:GUARD], self.whole[self.whole.numel() - GUARD :]])
        return bool((ends == 3.0).all())

    def bits(self):
        return self.tensor.view(torch.int32 if self.tensor.element_size() == 4 else torch.int16)


def launch_twice(case, spec, cubin, symbols, inputs, outputs):
    plan = {"launches": spec.launches(case.problem, case.configuration, device_constants())}
    for launch in plan["launches"]:
        launch["entry_symbol"] = symbols[launch["entry"]]
    scratch = {
        parameter["name"]: Guarded(torch.empty(parameter["size_bytes"] // 4, device="cuda"))
        for launch in plan["launches"]
        for parameter in launch["parameters"]
        if parameter.get("role") == "scratch"
    }
    buffers = {name: one.tensor for name, one in {**outputs, **scratch}.items()}
    call = bind_plan(cubin, plan, {**inputs, **buffers}, OPERATIONS[spec.fields["name"]].scalars)
    first = {}
    for _ in range(2):
        first = {name: one.bits().clone() for name, one in outputs.items()}
        for one in (*outputs.values(), *scratch.values()):
            one.poison()
        call()
        torch.cuda.synchronize()
    damaged = [name for name, one in {**outputs, **scratch}.items() if not one.is_whole()]
    differing = [name for name, one in outputs.items() if not torch.equal(first[name], one.bits())]
    return damaged, differing


def run_case(case, spec, compiled):
    cubin, symbols, error = compiled
    if error:
        return {"error": error[-2000:]}
    operation = OPERATIONS[spec.fields["name"]]
    inputs, factor = make_inputs(operation, case)
    like = operation.outputs_of(case.problem)
    outputs = {name: Guarded(tensor) for name, tensor in like.items()}
    del like
    damaged, differing = launch_twice(case, spec, cubin, symbols, inputs, outputs)
    written = {name: one.tensor for name, one in outputs.items()}

    def tolerance(dtype, output):
        """What cancellation leaves grows with the values."""
        rtol, atol = spec.tolerance(dtype, output)
        return rtol, atol * factor

    worst = worst_excess(operation, inputs, written, tolerance)
    result = {"worst_excess": worst}
    if max(worst.values()) > 1:
        result["error"] = f"departs from float64: {worst}"
    if damaged:
        result["error"] = f"wrote beyond {', '.join(damaged)}"
    if differing:
        result["error"] = f"two runs differ in {', '.join(differing)}"
    return result


@contextlib.contextmanager
def memory_for(case, folder):
    """Cases that take much of the GPU's memory run one at a time, whichever kernel's they are."""
    if case.problem["N"] * case.problem["D"] < 1 << 28:
        yield
        return
    with (folder / "memory.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            torch.cuda.empty_cache()


def run_kernel(file, first, each, seconds, output):
    """Appends a line to `output` before and after each case."""
    spec = Spec.read(file)
    every, uncovered = cases(spec, each)
    end = time.monotonic() + seconds
    compiler = Compiler("sm_90", max(1, (os.cpu_count() or 2) // 4))
    with contextlib.closing(compiler), output.open("a", buffering=1) as lines:
        lines.write(json.dumps({"cases": len(every), "uncovered": uncovered}) + "\n")
        orders = []
        for case in every[first:]:
            launches = spec.launches(case.problem, case.configuration)
            orders.append(compiler.start(spec, [launch["entry"] for launch in launches]))
        for index, (case, order) in enumerate(zip(every[first:], orders), start=first):
            if time.monotonic() > end:
                break
            begin = {"begin": index, **dataclasses.asdict(case)}
            lines.write(json.dumps(begin) + "\n")
            try:
                with memory_for(case, output.parent):
                    result = run_case(case, spec, order.result())
            except Exception as error:
                result = {"error": traceback.format_exc()[-3000:]}
                if "CUDA" in str(error) or "cuda" in str(error) or "memory" in str(error):
                    lines.write(json.dumps({"end": index, **result}) + "\n")
                    os._exit(3)  # the context may be broken: the parent goes on behind this case
            lines.write(json.dumps({"end": index, **result}) + "\n")


class Run:
    """The processes of one kernel, one after the other."""

    def __init__(self, kernel, file, each, end, folder):
        self.kernel, self.file, self.each, self.end = kernel, file, each, end
        self.lines = pathlib.Path(folder) / f"{kernel}.jsonl"
        self.log = (pathlib.Path(folder) / f"{kernel}.log").open("w+")
        self.deaths = 0
        self.start(0)

    def start(self, first):
        command = [sys.executable, __file__, "--one", str(self.file), "--first", str(first)]
        command += ["--each", str(self.each), "--seconds", str(max(1.0, self.end - time.monotonic()))]
        command += ["--output", str(self.lines)]
        self.process = subprocess.Popen(
            command, stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True
        )

    def end_group(self):
        """Ends what the process has left running: it may have died before its compilers."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def poll(self):
        """Whether the kernel is done; starts the next process behind a case that ended one."""
        if self.process.poll() is None:
            if time.monotonic() < self.end + 60:
                return False
            self.end_group()
            return True
        self.end_group()
        begun = [line["begin"] for line in self.read() if "begin" in line]
        if self.process.returncode == 0 or self.deaths == 10 or time.monotonic() > self.end:
            return True
        self.deaths += 1
        self.start(max(begun, default=-1) + 1)
        return False

    def read(self):
        if not self.lines.exists():
            return []
        return [json.loads(line) for line in self.lines.read_text().splitlines() if line.endswith("}")]

    def report(self):
        lines = self.read()
        begun = {line["begin"]: line for line in lines if "begin" in line}
        ended = {line["end"]: line for line in lines if "end" in line}
        failures = []
        for index, case in begun.items():
            outcome = ended.get(index, {"error": "ended the process"})
            if "error" in outcome:
                failures.append({**case, **outcome})
        self.log.flush()
        head = next((line for line in lines if "cases" in line), {"cases": 0, "uncovered": []})
        worst = max(
            (max(o["worst_excess"].values()) for o in ended.values() if "worst_excess" in o), default=0
        )
        return {
            "cases": head["cases"],
            "run": len(begun),
            "processes_ended": self.deaths,
            "uncovered_values": head["uncovered"],
            "worst_excess": worst,
            "failures": failures,
            "log": pathlib.Path(self.log.name).read_text()[-3000:] if failures or not begun else "",
        }


def run_all(kernels, variants, each, seconds):
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="cubind-edge.") as folder:
        runs = [Run(k, next(variants.glob(f"*/{k}.json")), each, end, folder) for k in kernels]
        pending = list(runs)
        while pending:
            pending = [run for run in pending if not run.poll()]
            time.sleep(0.5)
        return {run.kernel: run.report() for run in runs}


def main():
    parser = command_line.make_parser(__doc__, required=["output"])
    parser.add_argument("--kernels", nargs="+", choices=sorted(OPERATIONS), default=list(OPERATIONS))
    parser.add_argument("--variants", type=pathlib.Path, default=ROOT / "variants", help="the kernel specs")
    parser.add_argument("--each", type=int, default=3, help="configurations of a problem besides its default")
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--one", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        run_kernel(arguments.one, arguments.first, arguments.each, arguments.seconds, arguments.output)
        return
    results = run_all(arguments.kernels, arguments.variants, arguments.each, arguments.seconds)
    command_line.write(results, arguments.output)
    for kernel, result in results.items():
        print(
            f"{kernel}: {result['run']} of {result['cases']} cases, {len(result['failures'])} failed, worst "
            f"{result['worst_excess']:.3f} of the tolerance, not covered {result['uncovered_values']}"
        )
        for failure in result["failures"][:5]:
            described = {name: failure[name] for name in ("problem", "values", "configuration")}
            print(f"  {described}: {failure['error'].strip().splitlines()[-1][:300]}")
        if result["failures"] or not result["run"]:
            print(result["log"][-800:])
    if any(result["failures"] or not result["run"] for result in results.values()):
        sys.exit("cases failed")


if __name__ == "__main__":
    main()
