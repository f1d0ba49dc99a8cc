"""What cubind costs a training when anything is wrong: with and without it, a small transformer is trained.

    python3 bench/harmless [--steps 400] [--rounds 3] [--json FILE]

Needs the package `cubind` with its programs, torch with Triton and a GPU. Each run is a process of its own:

    torch      without cubind
    off        replace(model) with CUBIND=0
    absent     no daemon is to be had (CUBIND_EMBEDDED=0)
    killed     at the middle the daemon is killed
    stopped    at the middle it gets SIGSTOP
    wrong      at the middle another one takes its place, which answers everything wrongly

From the middle on each step asks for kernels of sizes that were not met before. The runs of a round follow
each other. It prints, for each, how far its losses are from those of `torch` (the mean of 20 steps), and the
median and the slowest step in milliseconds before and after the middle.
Exit status 1: losses differ, a kernel was missing after the first step, a step after the middle is slower
than the slowest before by more than 50 ms, or the median step of `off` or `absent` is above that of `torch`
by more than 2 %.
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys

import cubind
from cubind import programs

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
import wrong_daemon
from daemon import Daemon

LOST = ("killed", "stopped", "wrong")
MODES = ("torch", "off", "absent", *LOST)
TOLERANCE = 0.05  # between losses: bf16 rounds to 1 / 256, and cubind's kernels round otherwise
WINDOW = 20  # steps whose mean loss is compared: single batches are easy or hard
ALLOWED_MS = 50  # what a step may take longer
ALLOWED_SHARE = 0.02  # what the median step of torch's own operators may take longer
# Of this the wrong daemon has an answer.
ASKED = "rmsnorm_forward", {"N": 4, "D": 64, "T": "bf16"}, "nvidia-h200"


class Lost(Daemon):
    """A daemon that tunes nothing. lose(MODE): the event at the middle."""

    def __init__(self):
        super().__init__(
            programs.program("cubind").parent,
            ["--tune-when", "never"],
            shipped_tables=True,
            environment=programs.environment(),
        )
        self.wrong = None

    def __exit__(self, *error):
        if self.wrong is not None:
            self.wrong.close()
        self.kill()  # SIGTERM does not end one that is stopped
        super().__exit__(*error)

    def lose(self, mode):
        if mode == "stopped":
            self.process.send_signal(signal.SIGSTOP)
        elif mode == "killed":
            self.kill()
        elif mode == "wrong":
            with cubind.connect(self.address, timeout=60) as client:
                reply = wrong_daemon.reply_of(client, *ASKED)
            self.kill()
            pathlib.Path(self.address.removeprefix("unix://")).unlink(missing_ok=True)
            self.wrong = wrong_daemon.WrongDaemon(self.address, reply)


def environment(mode, address):
    names = ("CUBIND", "CUBIND_ADDRESS", "CUBIND_EMBEDDED", "WORLD_SIZE")
    kept = {name: value for name, value in os.environ.items() if name not in names}
    return kept | {
        "torch": {},
        "off": {"CUBIND": "0"},
        "absent": {"CUBIND_EMBEDDED": "0", "XDG_RUNTIME_DIR": "/nonexistent"},
    }.get(mode, {"CUBIND_ADDRESS": address})


def train(mode, steps):
    """What training.py prints, and its warnings."""
    with contextlib.ExitStack() as stack:
        daemon = stack.enter_context(Lost()) if mode in LOST else None
        command = [
            sys.executable,
            pathlib.Path(__file__).with_name("training.py"),
            "torch" if mode == "torch" else "cubind",
            str(steps),
        ]
        process = subprocess.Popen(
            command,
            env=environment(mode, daemon.address if daemon else ""),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        stack.callback(process.kill)
        middle = process.stdout.readline()
        if middle == "middle\n" and daemon:
            daemon.lose(mode)
        printed, said = process.communicate("go\n", timeout=300)
        if process.returncode != 0:
            raise RuntimeError(f"{mode}: exit status {process.returncode}\n{middle}{printed}{said}")
    warnings = [line for line in said.splitlines() if "RuntimeWarning" in line]
    return json.loads(printed) | {"warnings": warnings}


def smooth(losses):
    """The means of WINDOW steps that follow each other."""
    return [statistics.fmean(losses[i : i + WINDOW]) for i in range(len(losses) - WINDOW + 1)]


def summary(mode, runs, theirs):
    """The figures of a mode over its rounds. theirs: the runs of torch alone, in the same rounds."""
    pairs = [(run["losses"], other["losses"]) for run, other in zip(runs, theirs)]
    figures = {
        "loss_difference": max(abs(a - b) for pair in pairs for a, b in zip(*map(smooth, pair))),
        "loss_difference_of_one_step": max(abs(a - b) for pair in pairs for a, b in zip(*pair)),
    }
    for part in ("before", "after"):
        # Of the round that other work on the machine disturbed least.
        figures[f"median_ms_{part}"] = min(statistics.median(run[part]) for run in runs)
        figures[f"slowest_ms_{part}"] = max(max(run[part]) for run in runs)
    figures["slower_by_ms"] = max(max(run["after"]) - max(run["before"]) for run in runs)
    if mode in LOST:
        figures["all_loaded"] = all(run["loaded"] for run in runs)
        figures["launched"] = min(launched(run["report"]) for run in runs)
    return figures | {"warnings": [len(run["warnings"]) for run in runs], "report": runs[-1]["report"]}


def launched(report):
    """How many launches a report counts."""
    return sum(int(count) for count in re.findall(r"launched (\d+)", "\n".join(report)))


def faults(results):
    """What must not be, in words."""
    found = []
    for mode, figures in results.items():
        if figures["loss_difference"] > TOLERANCE:
            found.append(f"{mode}: losses differ by {figures['loss_difference']:.3f}")
        if figures["slower_by_ms"] > ALLOWED_MS:
            found.append(f"{mode}: a step took {figures['slower_by_ms']:.1f} ms more than before the middle")
        if not figures.get("all_loaded", True):
            found.append(f"{mode}: not every kernel was loaded after the first step: {figures['report']}")
        if not figures.get("launched", True):
            found.append(f"{mode}: no kernel was launched before the middle")
    for mode in ("off", "absent"):
        for part in ("median_ms_before", "median_ms_after"):
            share = results[mode][part] / results["torch"][part] - 1
            if share > ALLOWED_SHARE:
                found.append(f"{mode}: {part} is {100 * share:.1f} % above torch's")
    return found


def main():
    parser = command_line.make_parser(__doc__)
    parser.add_argument("--steps", type=int, default=400, help="training steps of a run")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each kind")
    parser.add_argument("--json", type=pathlib.Path, help="where to write the results")
    options = parser.parse_args()
    runs = {mode: [] for mode in MODES}
    for number in range(options.rounds):
        for mode in MODES:
            print(f"bench/harmless: round {number + 1}, {mode}", file=sys.stderr, flush=True)
            runs[mode].append(train(mode, options.steps))
    results = {mode: summary(mode, runs[mode], runs["torch"]) for mode in MODES}
    found = faults(results)
    # It needs torch and Triton, which the tests of this file do without.
    from machine import toolchain  # noqa: PLC0415

    facts = toolchain(commit="") | {"steps": options.steps, "rounds": options.rounds, "faults": found}
    command_line.print_and_write(facts | results, options.json)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
