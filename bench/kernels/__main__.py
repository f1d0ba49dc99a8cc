"""The kernel library beside torch, torch.compile and Triton, interleaved in one run, kernel times by CUPTI.

    python3 bench/kernels --bin DIR [--daemon ADDRESS] [--kernels NAME...] [--shapes small|all] [--seconds N] --output FILE

Starts a daemon from DIR (the package's bin folder), tunes each kernel at each shape from an empty store (with --daemon
it asks that one, which may have tuned them before), compares every
element of every side with float64, and measures all sides in turn, with a cold L2, beside a copy of as many bytes. A
failure is reported in FILE and stops nothing; problems that the seconds do not suffice for are listed there as left
out. Needs torch and Triton. Exit status 1: a result is wrong or a side failed.
"""

import argparse
import dataclasses
import json
import pathlib
import random
import sys
import time
import traceback

import torch
import triton

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import triton_kernels
from copies import COPIES, copy_expression, fastest_copy
from daemon import Daemon, RunningDaemon
from driver import bind_plan, compile_source
from machine import toolchain
from operations import OPERATIONS, worst_excess
from spec import Spec, expression
from timing import Timer, median

ROOT = pathlib.Path(__file__).parents[2]
ROWS = [(4096, 4096), (65536, 1024), (16384, 2048), (2048, 32768)]
NORMS = [(4096, 4096), (65536, 1024), (16384, 8192), (4096, 8192)]
# The first two of each are the small set.
SHAPES = {
    "softmax_forward": ROWS,
    "softmax_backward": ROWS,
    "layernorm_forward": NORMS,
    "layernorm_backward": NORMS,
    "rmsnorm_backward": NORMS,
    "rmsnorm_fused_forward": NORMS,
    "weighted_sum_forward": [(65536, 1024), (4096, 4096), (16, 65536), (1000003, 64)],
    "weighted_sum_backward": [(65536, 1024), (4096, 4096), (1000003, 64)],
}
FLAGS = {"rmsnorm_fused_forward": {"RESIDUAL": 1, "RSTD": 1}}


def problems(kernels, shapes):
    """(kernel, problem), the first shape of each kernel before the second of any."""
    ranked = []
    for kernel in kernels:
        listed = SHAPES[kernel] if shapes == "all" else SHAPES[kernel][:2]
        every = [(N, D, "bf16") for N, D in listed]
        if shapes == "all":
            every += [(*listed[0], "f32")]
        flags = FLAGS.get(kernel, {})
        ranked += [
            (rank, kernel, {**dict(zip("NDT", one, strict=True)), **flags}) for rank, one in enumerate(every)
        ]
    return [(kernel, problem) for _, kernel, problem in sorted(ranked, key=lambda one: one[0])]


def work_bytes(spec, problem):
    return expression(spec.fields["work"]["bytes"])(spec.values_of(problem))


class Sides:
    """The calls of one problem. A side that cannot be made or gives wrong results says so and is not timed."""

    def __init__(self, spec, kernel, problem):
        self.spec, self.kernel, self.problem = spec, kernel, problem
        self.operation = OPERATIONS[kernel]
        self.inputs = self.operation.inputs_of(problem)
        self.outputs = self.operation.outputs_of(problem)
        self.calls, self.errors, self.worst = {}, {}, {}

    def add(self, name, make):
        """`make` gives a call; what the call returns, or else the output buffers, is compared with the truth."""
        try:
            for output in self.outputs.values():
                output.fill_(float("nan"))
            call = make()
            results = call()
            torch.cuda.synchronize()
            written = self.outputs
            if results is not None:
                shapes = {key: value.shape for key, value in self.outputs.items()}
                results = results if isinstance(results, tuple) else tuple(results)
                written = {
                    key: value.reshape(shapes[key]) for key, value in zip(shapes, results, strict=True)
                }
            self.worst[name] = worst_excess(self.operation, self.inputs, written, self.spec.tolerance)
            self.calls[name] = call
        except Exception:
            self.errors[name] = traceback.format_exc(limit=4)[-3000:]

    def add_all(self, tuned, copies, timer):
        tensors = {**self.inputs, **self.outputs}
        if tuned.error:
            self.errors["cubind"] = tuned.error
        else:
            self.add("cubind", lambda: bind_plan(tuned.cubin, tuned.plan, tensors, self.operation.scalars))
        self.add("torch", lambda: lambda: self.operation.eager(self.inputs))
        torch._dynamo.reset()
        compiled = torch.compile(self.operation.formula, dynamic=False)
        self.add("torch_compile", lambda: lambda: compiled(self.inputs))
        triton_call = triton_kernels.CALLS[self.kernel]
        self.add("triton", lambda: lambda: triton_call(tensors))
        count = max(16, work_bytes(self.spec, self.problem) // 2 // 16 * 16)
        x, y = (torch.empty(count, dtype=torch.uint8, device="cuda") for _ in range(2))
        setting, self.calls["vector_copy"] = fastest_copy(timer, copies, x, y)
        return setting


@dataclasses.dataclass
class Tuned:
    """What the daemon serves for a problem, or why it does not."""

    seconds: float | None = None
    cubin: bytes = b""
    plan: dict = dataclasses.field(default_factory=dict)
    error: str | None = None


def tune(daemon, kernel, problem):
    tuned = Tuned()
    try:
        tuned.seconds = daemon.tune(kernel, problem)
        tuned.cubin, tuned.plan = daemon.get(kernel, problem)
    except Exception:
        tuned.error = traceback.format_exc(limit=2)[-4000:]
    print(f"{kernel} {problem}: {tuned.error or f'tuned in {tuned.seconds:.1f} s'}", flush=True)
    return tuned


def tune_all(daemon, todo, end):
    """Before this process has a context, so that the GPU is the daemon's alone."""
    with daemon:
        tuned = []
        for kernel, problem in todo:
            if time.monotonic() > end:
                break
            tuned.append(tune(daemon, kernel, problem))
        return tuned, daemon.log_tail()


def measure(spec, kernel, problem, tuned, copies, timer, rounds):
    sides = Sides(spec, kernel, problem)
    timer.warm_up(0.2)
    copy = sides.add_all(tuned, copies, timer)
    samples = timer.samples(sides.calls, rounds, seed=random.randrange(1 << 30))
    plan = tuned.plan
    triton_name = None
    if "triton" in sides.calls:
        triton_name = triton_kernels.chosen(kernel, problem["D"])
    return {
        "kernel": kernel,
        "problem": problem,
        "work_bytes": work_bytes(spec, problem),
        "tuned_in_s": tuned.seconds,
        "configuration": plan.get("configuration"),
        "match": plan.get("match"),
        "provenance": plan.get("provenance"),
        "triton_configuration": triton_name,
        "vector_copy": copy,
        "kernel_time_us": {name: median(values) for name, values in samples.items()},
        "kernel_time_spread_us": {name: [min(v), max(v)] for name, v in samples.items()},
        "do_bench_time_us": {
            name: 1000 * triton.testing.do_bench(call, warmup=10, rep=40, return_mode="median")
            for name, call in sides.calls.items()
        },
        "worst_excess": sides.worst,
        "errors": sides.errors,
    }


def report(result):
    if "error" in result:
        print(f"{result['kernel']} {result['problem']}: FAILED\n{result['error']}", flush=True)
        return
    times = result["kernel_time_us"]
    line = "  ".join(f"{name} {value:.2f}" for name, value in times.items())
    problem = result["problem"]
    print(f"{result['kernel']} ({problem['N']}, {problem['D']}) {problem['T']}, us: {line}")
    if "cubind" in times:
        best = min((v, k) for k, v in times.items() if k not in ("cubind", "vector_copy"))
        print(
            f"  copy/cubind {times['vector_copy'] / times['cubind']:.3f}  best other/cubind "
            f"{best[0] / times['cubind']:.3f} ({best[1]})  {result['configuration']}"
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


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of cubind and cubindctl")
    parser.add_argument("--daemon", metavar="ADDRESS", help="a running daemon that tunes and serves")
    parser.add_argument("--variants", type=pathlib.Path, default=ROOT / "variants", help="the kernel specs")
    parser.add_argument("--kernels", nargs="+", choices=sorted(SHAPES), default=list(SHAPES))
    parser.add_argument("--shapes", choices=["small", "all"], default="small")
    parser.add_argument("--seconds", type=float, default=300, help="no problem is begun after so long")
    parser.add_argument("--rounds", type=int, default=40, help="samples of each side")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="file for the results")
    parser.add_argument("--commit", help="what to record as the commit; default: git's HEAD")
    arguments = parser.parse_args()

    start = time.monotonic()
    todo = problems(arguments.kernels, arguments.shapes)
    daemon = RunningDaemon(arguments.bin, arguments.daemon) if arguments.daemon else Daemon(arguments.bin)
    tuned, log = tune_all(daemon, todo, start + arguments.seconds / 2)
    torch.manual_seed(time.time_ns())  # fresh inputs each time
    results = {"toolchain": toolchain(arguments.commit), "problems": [], "left_out": [], "daemon_log": log}
    source = ROOT / "bench" / "common" / "vector_copy.cu"
    copies = compile_source(source, [copy_expression(setting) for setting in COPIES])
    timer = Timer(copies[0])
    specs = {
        kernel: Spec.read(next(arguments.variants.glob(f"*/{kernel}.json"))) for kernel in arguments.kernels
    }
    for index, (kernel, problem) in enumerate(todo):
        if index >= len(tuned) or time.monotonic() > start + arguments.seconds:
            results["left_out"].append({"kernel": kernel, "problem": problem})
            continue
        try:
            result = measure(specs[kernel], kernel, problem, tuned[index], copies, timer, arguments.rounds)
        except Exception:
            result = {"kernel": kernel, "problem": problem, "error": traceback.format_exc()[-4000:]}
        results["problems"].append(result)
        arguments.output.write_text(json.dumps(results, indent=1) + "\n")
        report(result)
        torch.cuda.empty_cache()
    arguments.output.write_text(json.dumps(results, indent=1) + "\n")
    print(f"{len(results['problems'])} problems, {len(results['left_out'])} left out")
    if not results["problems"] or any(failed(result) for result in results["problems"]):
        sys.exit("a result is wrong or a side failed")


if __name__ == "__main__":
    main()
