"""Forty problems of rmsnorm_forward in one command: how long, what was compiled, what each stage of the jobs
took.

    python3 bench/shape_list --bin DIR [--gpus 0] [--rounds 1] [--budget 40] [--output FILE]

From an empty store, with all services up, the list is tuned exhaustively, then once more with everything
compiled. With a budget a further daemon, its store empty too, tunes it with so many trials a problem, each
search beginning with the best of the problems before it; the winners of both that differ are timed in turn as
in `bench/repeats`. With several values of --gpus (`--gpus 0 0,1`) the list is tuned from empty on each of
these sets, in turn and --rounds times, and nothing else is done. DIR holds cubind's programs. Needs torch.
"""

import contextlib
import json
import os
import pathlib
import sys
import tempfile
import time

os.environ.setdefault("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")  # buffers as far apart as the tuner's

sys.path += [str(pathlib.Path(__file__).parents[1] / folder) for folder in ("common", "repeats")]
import command_line
import oracle
import torch
from daemon import Daemon
from judging import Oracle
from machine import toolchain

KERNEL = "rmsnorm_forward"
SIZES = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
PROBLEMS = [{"N": n, "D": d, "T": "bf16"} for d in (1024, 2048, 4096, 5120, 8192) for n in SIZES]
ROUNDS = 600
SLOTS_BYTES, MOST_SLOTS = 4 << 30, 32  # the latter as bench/repeats
SETTLING_S = 2  # after which the agent's compilers are there, and a spare worker for each GPU


def summary(daemon, seconds, jobs):
    """What the jobs of one command came to: seconds of each stage in sum, compiles, trials by outcome."""
    stages, outcomes, calls = {}, {}, 0
    for job in jobs:
        shown = json.loads(daemon.call("jobs", "show", job["id"], "--json"))
        calls += shown["nvrtc_calls"]
        for name, milliseconds in shown["stages_ms"].items():
            stages[name] = stages.get(name, 0) + milliseconds / 1000
        for name, count in shown["outcomes"].items():
            outcomes[name] = outcomes.get(name, 0) + count
    return {
        "seconds": seconds,
        "jobs": len(jobs),
        "nvrtc_calls": calls,
        "stages_s": stages,
        "trials": outcomes,
    }


def tune_list(daemon, *options):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as shapes:
        json.dump({"kernel": KERNEL, "problems": PROBLEMS}, shapes)
        shapes.flush()
        start = time.monotonic()
        text = daemon.call("tune", "--shapes", shapes.name, "--json", *options, seconds=300)
        return summary(daemon, time.monotonic() - start, json.loads(text)["jobs"])


def winners(daemon):
    return [daemon.get(KERNEL, problem)[1]["configuration"] for problem in PROBLEMS]


def losses(commit, exhaustive, budgeted):
    """By problem: how much longer the second winner takes than the first, by the oracle of bench/repeats."""
    judge, result = Oracle(commit), []
    for problem, first, second in zip(PROBLEMS, exhaustive, budgeted, strict=True):
        if first == second:
            result.append(0.0)
            continue
        slot_bytes = 4 * problem["N"] * problem["D"]
        slots = min(max(SLOTS_BYTES // slot_bytes, 1), MOST_SLOTS)
        measured = oracle.Problem(judge.spec(KERNEL), problem, judge.device, slots)
        pair = {"first": first, "second": second}
        calls = {name: measured.call(judge.compiler, one) for name, one in pair.items()}
        judge.timer.warm_up(0.15)
        times = oracle.interleaved(judge.timer, calls, ROUNDS)
        torch.cuda.synchronize()
        for call in calls.values():
            call.unload()
        result.append(oracle.trimmed_mean(times["second"]) / oracle.trimmed_mean(times["first"]) - 1)
    return result


@contextlib.contextmanager
def settled_daemon(arguments, gpus):
    with Daemon(arguments.bin, ["--gpus", gpus]) as daemon:
        time.sleep(SETTLING_S)
        yield daemon


def from_empty(arguments, gpus):
    with settled_daemon(arguments, gpus) as daemon:
        return tune_list(daemon)


def on_one_set(arguments, gpus):
    with settled_daemon(arguments, gpus) as daemon:
        result = {"from empty": tune_list(daemon)}
        result["compiled"] = tune_list(daemon, "--retune")
        exhaustive = winners(daemon)
    if arguments.budget:
        with settled_daemon(arguments, gpus) as daemon:
            result["budget"] = tune_list(daemon, "--max-trials", str(arguments.budget))
            budgeted = winners(daemon)
            result["budget"]["winners"] = [list(pair) for pair in zip(exhaustive, budgeted, strict=True)]
            result["budget"]["losses"] = losses(arguments.commit, exhaustive, budgeted)
    return result


def main():
    parser = command_line.make_parser(__doc__, required=["bin"], optional=["output", "commit"])
    parser.add_argument("--gpus", nargs="+", default=["0"], help="sets of GPUs, as the daemon's --gpus")
    parser.add_argument("--rounds", type=int, default=1, help="how often, where there are several sets")
    parser.add_argument("--budget", type=int, help="trials a problem")
    arguments = parser.parse_args()
    if arguments.rounds > 1 and len(arguments.gpus) == 1:
        parser.error("--rounds is for several sets of GPUs")
    if len(arguments.gpus) == 1:
        runs = {arguments.gpus[0]: on_one_set(arguments, arguments.gpus[0])}
    else:
        runs = {gpus: [] for gpus in arguments.gpus}
        for _ in range(arguments.rounds):
            for gpus in arguments.gpus:
                runs[gpus].append(from_empty(arguments, gpus))
    document = {**toolchain(arguments.commit), "problems": PROBLEMS, "runs": runs}
    command_line.print_and_write(document, arguments.output)


if __name__ == "__main__":
    main()
