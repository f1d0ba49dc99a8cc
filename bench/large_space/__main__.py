"""A search under a budget and the exhaustive one: a matmul of about 3,500 configurations, bf16, 4096^3.

    python3 bench/large_space --bin DIR [--trials 150] [--seeds 5] [--output FILE]

The widened matmul (wide.py) is tuned exhaustively, then once per seed within the budget, each by a daemon
whose store is empty. A seed is a name of the kernel: the search draws from the key of its job. In the end the
distinct winners are timed in turn, cold. DIR holds cubind's programs. Needs torch. Exit status 1: a seed lost
more than 2 %.
"""

import json
import os
import pathlib
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
import torch
from daemon import Daemon
from driver import bind_plan
from machine import toolchain
from timing import Timer, median
from wide import write_kernels

PROBLEM = {"M": 4096, "N": 4096, "K": 4096, "T": "bf16", "TRANSPOSE_B": 1}
LOSS = 0.02
ROUNDS = 200


def tuned(arguments, folder, name, *options):
    """The winner of a search that begins with an empty store: what is served, and the seconds until it was
    stored."""
    jobs = ["--compile-jobs", str(os.cpu_count())]
    with Daemon(arguments.bin, ["--kernels", str(folder), "--no-shipped-kernels", *jobs]) as daemon:
        seconds = daemon.tune(name, PROBLEM, *options, seconds=580)
        cubin, plan = daemon.get(name, PROBLEM)
    print(
        f"{name}: {seconds:.1f} s, {plan['provenance']['time_us']:.2f} us, {plan['configuration']}",
        flush=True,
    )
    return {"name": name, "seconds": seconds, "cubin": cubin, "plan": plan}


def time_winners(searches):
    """{name of a search: microseconds of its winner}; a configuration that won twice is timed once."""
    timer = Timer()
    draw = torch.Generator("cuda").manual_seed(1)
    a, b = (torch.randn(4096, 4096, generator=draw, device="cuda").bfloat16() for _ in range(2))
    buffers = {"a": a, "b": b, "bias": torch.zeros(4096, device="cuda").bfloat16(), "c": torch.empty_like(a)}
    distinct = {json.dumps(one["plan"]["configuration"]): one for one in searches}
    calls = {key: bind_plan(one["cubin"], one["plan"], buffers, {}) for key, one in distinct.items()}
    timer.warm_up()
    times = timer.samples(calls, ROUNDS)
    return {one["name"]: median(times[json.dumps(one["plan"]["configuration"])]) for one in searches}


def main():
    parser = command_line.make_parser(__doc__, required=["bin"], optional=["output", "commit"])
    parser.add_argument("--trials", type=int, default=150)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    names = [f"matmul_wide_{seed}" for seed in range(arguments.seeds)]
    with tempfile.TemporaryDirectory(prefix="cubind-large.") as folder:
        write_kernels(folder, ["matmul_wide", *names])
        searches = [tuned(arguments, folder, name, "--max-trials", str(arguments.trials)) for name in names]
        searches.insert(0, tuned(arguments, folder, "matmul_wide", "--max-trials", "100000"))
    times = time_winners(searches)
    best = min(times.values())
    rows = [
        {
            "search": one["name"],
            "seconds": one["seconds"],
            "configuration": one["plan"]["configuration"],
            "us": times[one["name"]],
            "loss": times[one["name"]] / best - 1,
        }
        for one in searches
    ]
    for row in rows:
        print(f"{row['search']}: {row['seconds']:.1f} s, {row['us']:.2f} us, {row['loss']:+.2%}", flush=True)
    result = {**toolchain(arguments.commit), "problem": PROBLEM, "budget": arguments.trials, "searches": rows}
    command_line.write(result, arguments.output)
    return 1 if any(row["loss"] > LOSS for row in rows[1:]) else 0


if __name__ == "__main__":
    sys.exit(main())
