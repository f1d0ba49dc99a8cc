"""The kernel library and torch, torch.compile, Triton, cuBLAS and cuDNN, interleaved in one run, kernel
times by CUPTI.

    python3 bench/kernels --bin DIR [--shipped | --daemon ADDRESS] [--kernels NAME...] [--shapes
    table|more|all] --output FILE

Starts a daemon from DIR (the package's bin folder) and takes what it serves for each shape: with --shipped
what its shipped table has, else each kernel is tuned first, from an empty store; --daemon asks a daemon that
runs. Compares every element of every side with float64, and measures all sides in turn, with a cold L2,
kernels on rows with a copy of as many bytes. A failure is reported in FILE and stops nothing; problems that
the seconds do not suffice for are listed there as left out. Needs torch and Triton; with --shipped about four
minutes on an H200. Exit status 1: a result is wrong or a side failed.
"""

import json
import pathlib
import sys
import time
import traceback

import torch

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
from ahead import compile_ahead
from copies import COPIES, copy_expression
from daemon import Daemon, RunningDaemon, kernels_of
from driver import compile_source
from machine import toolchain
from mma_engine import MmaEngine
from operations import OPERATIONS
from served import serve_all
from shapes import KERNELS, SETS, problems
from sides import Sides
from spec import Spec
from subjects import subject
from summary import summary
from timing import Timer

ROOT = pathlib.Path(__file__).parents[2]
OWN = ("cubind", "mma.sync", "vector_copy")
COMPILED_AHEAD = {*OPERATIONS, "layernorm_linear"}


class Bench:
    """What is made once for all problems."""

    def __init__(self, variants, kernels, todo, rounds):
        self.rounds = rounds
        self.specs = {kernel: Spec.read(next(variants.glob(f"*/{kernel}.json"))) for kernel in kernels}
        source = ROOT / "bench" / "common" / "vector_copy.cu"
        self.copies = compile_source(source, [copy_expression(setting) for setting in COPIES])
        self.timer = Timer()
        products = [problem for kernel, problem in todo if kernel == "matmul"]
        self.mma = MmaEngine(products) if products else None

    def measure(self, kernel, problem, served):
        here = subject(self.specs[kernel], problem)
        sides = Sides(here)
        self.timer.warm_up(0.2)
        sides.add_all(served)
        mma = self.add_mma(sides, served) if kernel == "matmul" else None
        copy = sides.add_copy(self.timer, self.copies)
        return {
            "kernel": kernel,
            "problem": problem,
            "work_bytes": here.work_bytes,
            "flops": here.flops,
            "tuned_in_s": served.seconds,
            "configuration": served.plan.get("configuration"),
            "match": served.plan.get("match"),
            "provenance": served.plan.get("provenance"),
            "triton_configuration": here.triton_configuration() if "triton" in sides.calls else None,
            "mma_configuration": mma,
            "vector_copy": copy,
            **sides.times(self.timer, self.rounds),
            "worst_excess": sides.worst,
            "errors": sides.errors,
        }

    def add_mma(self, sides, served):
        """Adds the side if the served variant has another engine; returns its configuration."""
        if served.plan.get("configuration", {}).get("ENGINE") == 0:
            return None
        here = sides.subject
        try:
            configuration, call = self.mma.fastest(here.problem, here.operands, self.timer)
        except Exception:
            sides.errors["mma.sync"] = traceback.format_exc(limit=4)[-3000:]
            return None
        sides.add("mma.sync", lambda: call)
        return configuration


def report(result):
    if "error" in result:
        print(f"{result['kernel']} {result['problem']}: FAILED\n{result['error']}", flush=True)
        return
    times = result["kernel_time_us"]
    print(
        f"{result['kernel']} {result['problem']}, us: " + "  ".join(f"{n} {v:.2f}" for n, v in times.items())
    )
    others = [(value, name) for name, value in times.items() if name not in OWN]
    if "cubind" in times and others:
        best = min(others)
        copy = f"copy/cubind {times['vector_copy'] / times['cubind']:.3f}  " if "vector_copy" in times else ""
        print(
            f"  {copy}best other/cubind {best[0] / times['cubind']:.3f} ({best[1]})  {result['configuration']}"
        )
    wrong = {
        s: worst for s, outputs in result["worst_excess"].items() if (worst := max(outputs.values())) > 1
    }
    if wrong:
        print(f"  beyond the tolerance: {wrong}")
    for side, error in result["errors"].items():
        print(f"  {side} FAILED: {error.strip().splitlines()[-1]}")
    sys.stdout.flush()


def failed(result):
    if "error" in result or result["errors"]:
        return True
    return max(result["worst_excess"]["cubind"].values()) > 1


def parsed():
    parser = command_line.make_parser(__doc__, required=["bin", "output"], optional=["commit"])
    parser.add_argument(
        "--shipped", action="store_true", help="take what the shipped table has; tune the rest"
    )
    parser.add_argument("--daemon", metavar="ADDRESS", help="a running daemon that tunes and serves")
    parser.add_argument("--variants", type=pathlib.Path, default=ROOT / "variants", help="the kernel specs")
    parser.add_argument("--kernels", nargs="+", choices=KERNELS, default=KERNELS)
    parser.add_argument("--shapes", choices=SETS, default="table")
    parser.add_argument("--seconds", type=float, default=600, help="no problem is begun after so long")
    parser.add_argument("--rounds", type=int, default=40, help="samples of each side")
    return parser.parse_args()


def daemon_of(arguments):
    if arguments.daemon:
        return RunningDaemon(arguments.bin, arguments.daemon)
    return Daemon(arguments.bin, kernels_of(arguments.variants), shipped_tables=arguments.shipped)


def main():
    arguments = parsed()
    start = time.monotonic()

    def passed():
        return time.monotonic() - start

    todo = problems(arguments.kernels, arguments.shapes)
    from_table = bool(arguments.shipped or arguments.daemon)
    served, log = serve_all(daemon_of(arguments), todo, from_table, start + arguments.seconds / 2)
    print(f"served after {passed():.0f} s", flush=True)
    torch.set_grad_enabled(False)
    torch.manual_seed(time.time_ns())  # fresh inputs each time
    bench = Bench(arguments.variants, arguments.kernels, todo, arguments.rounds)
    compile_ahead(arguments.variants, [one for one in todo if one[0] in COMPILED_AHEAD])
    print(f"compiled ahead after {passed():.0f} s", flush=True)
    results = {"toolchain": toolchain(arguments.commit), "problems": [], "left_out": [], "daemon_log": log}
    for index, (kernel, problem) in enumerate(todo):
        if served[index] is None or passed() > arguments.seconds:
            results["left_out"].append({"kernel": kernel, "problem": problem})
            continue
        try:
            result = bench.measure(kernel, problem, served[index])
        except Exception:
            result = {"kernel": kernel, "problem": problem, "error": traceback.format_exc()[-4000:]}
        results["problems"].append(result)
        command_line.write(results, arguments.output)
        report(result)
        torch.cuda.empty_cache()
    results["summary"] = summary(results)
    command_line.write(results, arguments.output)
    print(json.dumps(results["summary"], indent=1))
    print(f"{len(results['problems'])} problems, {len(results['left_out'])} left out, {passed():.0f} s")
    if not results["problems"] or any(failed(result) for result in results["problems"]):
        sys.exit("a result is wrong or a side failed")


if __name__ == "__main__":
    main()
