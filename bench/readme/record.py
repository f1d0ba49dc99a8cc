"""Records the table of trials that the demo, the replay device's tests and `cubind --replay` play.

    python3 bench/readme/record.py --bin DIR --output FILE

From an empty store, every configuration of four problems of RMSNorm is tuned on the GPU; FILE gets all
trials with their samples. It belongs in tests/golden/replay/rmsnorm.json. DIR holds cubind's programs. Then a
daemon plays FILE, and `cubindctl explain` prints what a reader without a GPU sees. Exit status 1: a trial
lacks the clocks of memory and SMs, without which there is no roofline, or a configuration failed.
"""

import json
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
from daemon import Daemon, spelled

KERNEL = "rmsnorm_forward"
SIZES = ((1024, 8192), (4096, 4096), (16384, 4096), (65536, 1024))
PROBLEMS = [{"N": n, "D": d, "T": "bf16"} for n, d in SIZES]


def record(bin_dir, file):
    """Tunes the problems and writes all trials."""
    with Daemon(bin_dir) as daemon:
        for problem in PROBLEMS:
            print(f"{spelled(problem)}: {daemon.tune(KERNEL, problem, seconds=300):.1f} s", flush=True)
        daemon.call("export", "--all-trials", "--samples", "-o", str(file))


def played(bin_dir, file):
    """What `cubindctl explain` says of a problem that was tuned with the table."""
    with Daemon(bin_dir, ["--replay", str(file)]) as daemon:
        daemon.tune(KERNEL, PROBLEMS[-1], seconds=300)
        return daemon.call("explain", KERNEL, "--problem", spelled(PROBLEMS[-1]))


def faults(table):
    """A sentence for each trial that is no good in a demo."""
    for trial in table["trials"]:
        where = f"{trial['problem']['dims']} {trial['configuration']}"
        if trial["outcome"] not in ("correct", "unverified"):
            yield f"{where}: {trial['outcome']}"
        elif not any(block.get("memory_mhz") and block["sm_mhz"] for block in trial["screening"]):
            yield f"{where}: no clocks"


def main():
    parser = command_line.make_parser(__doc__, required=["bin"])
    parser.add_argument("--output", type=pathlib.Path, required=True, help="file for the table")
    parser.add_argument("--commit", help="not recorded: the table names compiler and driver")
    arguments = parser.parse_args()
    file = arguments.output.resolve()
    record(arguments.bin, file)
    table = json.loads(file.read_text())
    names = {device["facts"]["name"] for device in table["devices"]}
    print(f"{len(table['trials'])} trials of {len(table['records'])} problems on {', '.join(names)}")
    print(played(arguments.bin, file), flush=True)
    found = [*faults(table)]
    if found:
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
