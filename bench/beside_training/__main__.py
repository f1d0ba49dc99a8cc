"""What 1,000 misses cost a training loop on the same GPU: its step time, its free memory, and whether the
jobs run after.

    python3 bench/beside_training --bin DIR [--misses 1000] [--rounds 8] [--control] [--output FILE]

Another process trains a transformer without a pause, for a GPU that has just rested runs faster. Its steps
are timed by events in rounds that follow each other: one while misses are asked, one as long without, and in
the next pair the other way round. --control asks nothing in either: how much rounds differ by themselves.
The daemon gives way to others (--tune-when idle), so no job may touch the GPU meanwhile.
When the training ends, the waiting jobs must run by themselves: the seconds until the first record are
measured. DIR holds cubind's programs. Needs torch. Exit status 1: a job did not run, or the free memory
changed.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
from daemon import Daemon
from machine import toolchain

KERNEL = "weighted_sum_forward"
BUCKETS = (1, 4, 16, 64, 256, 1024, 4096, 16384)  # of N; D is compiled in


class Training:
    """The training process. It answers each line with the figures of its steps since the line before."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, pathlib.Path(__file__).with_name("train.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.figures()
        time.sleep(5)  # until its clock is steady
        self.figures()

    def figures(self):
        self.process.stdin.write("figures\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def round(self, body):
        """Its figures while `body` runs, and for how long that was."""
        self.figures()
        start = time.monotonic()
        body()
        seconds = time.monotonic() - start
        return self.figures() | {"seconds": seconds}

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)


def ask(daemon, problems):
    """Asks for each problem once; a miss starts a job behind its answer."""
    listed = [argument for problem in problems for argument in ("--problem", problem)]
    daemon.call("get", KERNEL, *listed, "--json", seconds=120)


def timed_pairs(daemon, training, parts, control):
    """Two lists of rounds: without misses, and with a part of them each."""
    plain, beside = [], []
    seconds = 2.0
    for index, part in enumerate(parts):
        for asks in (False, True) if index % 2 else (True, False):
            if asks and not control:
                beside.append(training.round(lambda part=part: ask(daemon, part)))
                seconds = beside[-1]["seconds"]
            else:
                (beside if asks else plain).append(training.round(lambda s=seconds: time.sleep(s)))
    return plain, beside


def until_first_record(daemon, seconds):
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        jobs = json.loads(daemon.call("jobs", "--all", "--json"))["jobs"]
        if any(job["kind"] == "tune" and job["state"] == "done" for job in jobs):
            return time.monotonic() - start
        time.sleep(0.2)
    return None


def main():
    parser = command_line.make_parser(__doc__, required=["bin"], optional=["output", "commit"])
    parser.add_argument("--misses", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=8, help="with misses; as many without")
    parser.add_argument("--control", action="store_true", help="no misses at all")
    arguments = parser.parse_args()
    each = arguments.misses // arguments.rounds
    problems = [
        f"N={BUCKETS[k % len(BUCKETS)]},D={64 + k // len(BUCKETS) * 8},T=bf16"
        for k in range(arguments.misses)
    ]
    parts = [problems[index * each : (index + 1) * each] for index in range(arguments.rounds)]
    training = Training()
    with Daemon(arguments.bin, ["--gpus", "0"]) as daemon:
        plain, beside = timed_pairs(daemon, training, parts, arguments.control)
        waiting = json.loads(daemon.call("jobs", "--json"))["jobs"]
        training.end()
        ran = 0.0 if arguments.control else until_first_record(daemon, 60)
    step = {
        name: statistics.median(r["step_ms"] for r in rows)
        for name, rows in (("plain", plain), ("beside", beside))
    }
    free = {r["free_bytes"] for r in plain + beside}
    result = {
        **toolchain(arguments.commit),
        "step_ms": step,
        "slower": step["beside"] / step["plain"] - 1,
        "misses_per_second": each / statistics.median(r["seconds"] for r in beside),
        "free_bytes": sorted(free),
        "jobs_waiting": len(waiting),
        "seconds_until_first_record": ran,
        "rounds": {"plain": plain, "beside": beside},
    }
    command_line.print_and_write(result, arguments.output)
    return 0 if ran is not None and len(free) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
