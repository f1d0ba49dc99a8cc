"""RMSNorm winners of cubind, torch, Triton and copies, interleaved in one run, kernel times by CUPTI.

    python3 bench/rmsnorm_vs_torch_triton --winners DIR [--runs 3] [--json FILE]

DIR holds NAME.cubin and NAME.json pairs; the JSON is

    {"kernel": "rmsnorm_forward", "problem": {"N": 4096, "D": 4096, "T": "bf16"},
     "launches": [{"entry_symbol": "...", "grid": [x, y, z], "block": [x, y, z], "shared_bytes": 0,
                   "parameters": [{"name": "x", "kind": "buffer", "type": "bf16"},
                                  {"name": "N", "kind": "scalar", "type": "i64", "value": 4096},
                                  {"name": "eps", "kind": "scalar", "type": "f32"}]}]}

A scalar without a value comes from the caller. Needs torch and Triton. Exit status 1: a result is wrong.
"""

import argparse
import json
import pathlib
import sys
import time

import torch
import torch.nn.functional
import triton

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import triton_kernel
from copies import COPIES, copy_expression, fastest_copy
from driver import bind_plan, compile_source
from machine import toolchain
from timing import Timer, median

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
TOLERANCES = {"bf16": (1.6e-2, 1e-5), "f16": (2e-3, 1e-5), "f32": (1e-5, 1e-6)}
EPS = 1e-6


def excess(y, x, w):
    """The largest |y - expected| / (atol + rtol * |expected|) over all elements; above 1 is wrong."""
    rtol, atol = TOLERANCES[{v: k for k, v in TYPES.items()}[x.dtype]]
    worst = 0.0
    for rows, part in zip(x.split(4096), y.split(4096)):
        wide = rows.double()
        expected = wide * torch.rsqrt(wide.square().mean(dim=1, keepdim=True) + EPS) * w.double()
        ratio = (part.double() - expected).abs() / (atol + rtol * expected.abs())
        worst = max(worst, torch.nan_to_num(ratio, nan=float("inf")).max().item())
    return worst


def measure(winner, timer, copies, runs, rounds):
    plan = json.loads(winner.read_text())
    problem = plan["problem"]
    N, D, dtype = problem["N"], problem["D"], TYPES[problem["T"]]
    x = torch.randn(N, D, device="cuda", dtype=torch.float32).to(dtype)
    w = torch.randn(D, device="cuda", dtype=torch.float32).to(dtype)
    y = torch.full_like(x, float("nan"))
    cubin = winner.with_suffix(".cubin").read_bytes()
    timer.warm_up()
    copy_name, copy_call = fastest_copy(timer, copies, x, y)
    candidates = {
        "cubind": bind_plan(cubin, plan, {"x": x, "w": w, "y": y}, {"eps": EPS}),
        "torch": lambda: torch.nn.functional.rms_norm(x, (D,), w, EPS),
        "triton": lambda: triton_kernel.rmsnorm(x, w, y, EPS),
        "triton_tiled": lambda: triton_kernel.rmsnorm_tiled(x, w, y, EPS),
        "torch_copy": lambda: y.copy_(x),
        "vector_copy": copy_call,
    }
    checks = {}
    for name in ("cubind", "triton", "triton_tiled"):
        y.fill_(float("nan"))
        candidates[name]()
        checks[name] = excess(y, x, w)
    checks["torch"] = excess(candidates["torch"](), x, w)
    candidates["vector_copy"]()
    checks["vector_copy"] = 0.0 if torch.equal(x, y) else float("inf")
    times = []
    for run in range(runs):
        samples = timer.samples(candidates, rounds, seed=run)
        times.append({name: median(values) for name, values in samples.items()})
    return {
        "problem": problem,
        "configuration": plan.get("configuration"),
        "triton_configurations": triton_kernel.chosen(),
        "vector_copy": copy_name,
        "kernel_time_us": times,
        "do_bench_time_us": {
            name: 1000 * triton.testing.do_bench(call, return_mode="median")
            for name, call in candidates.items()
        },
        "worst_excess": checks,
    }


def report(result):
    problem = result["problem"]
    for run, times in enumerate(result["kernel_time_us"]):
        line = "  ".join(f"{name} {value:8.2f}" for name, value in times.items())
        ratios = (
            f"torch/cubind {times['torch'] / times['cubind']:.3f}  triton/cubind {times['triton'] / times['cubind']:.3f}  "
            f"tiled/cubind {times['triton_tiled'] / times['cubind']:.3f}  "
            f"cubind/copy {times['cubind'] / times['vector_copy']:.3f}  "
            f"copy speed/torch's {times['torch_copy'] / times['vector_copy']:.3f}"
        )
        print(f"({problem['N']}, {problem['D']}) {problem['T']} run {run + 1}, us: {line}  |  {ratios}")
    line = "  ".join(f"{name} {value:8.2f}" for name, value in result["do_bench_time_us"].items())
    print(f"({problem['N']}, {problem['D']}) {problem['T']} do_bench, us: {line}")
    print(f"  cubind {result['configuration']}; {result['triton_configurations']}; {result['vector_copy']}")
    print(f"  worst excess {result['worst_excess']}", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--winners", required=True, type=pathlib.Path, help="folder of NAME.cubin and NAME.json pairs"
    )
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=50, help="samples of each candidate in a run")
    parser.add_argument("--json", type=pathlib.Path, help="file for the results")
    parser.add_argument("--commit", help="what to record as the commit; default: git's HEAD")
    arguments = parser.parse_args()

    winners = sorted(arguments.winners.glob("*.json"))
    if not winners:
        parser.error(f"{arguments.winners} holds no NAME.json")
    torch.manual_seed(time.time_ns())  # fresh inputs each time
    source = pathlib.Path(__file__).parents[1] / "common" / "vector_copy.cu"
    copies = compile_source(source, [copy_expression(setting) for setting in COPIES])
    timer = Timer()
    results = {"toolchain": toolchain(arguments.commit), "problems": []}
    for winner in winners:
        result = measure(winner, timer, copies, arguments.runs, arguments.rounds)
        results["problems"].append(result)
        report(result)
        if arguments.json:
            arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    wrong = [r["problem"] for r in results["problems"] if max(r["worst_excess"].values()) > 1]
    if wrong:
        sys.exit(f"wrong results for {wrong}")


if __name__ == "__main__":
    main()
