#!/usr/bin/env python3
"""How often the faster of two configurations wins, by recorded times of one configuration that was measured
again and again.

usage: ./dev bench noise [--seeds N] FILE...

A FILE holds repeated measurements of one unchanged configuration that others recorded (Kernel Tuner's cache
format, gz or plain), each with its samples in their order. Two finalists draw their times from it, one time
each a round; the second's are scaled so that it is 0, 1 or 2 % faster or slower. The tuner's own rounds and
choice decide; the first finalist is the incumbent. Printed are the share of seeds in which the second wins
and how many samples each got, once with at most 30 samples and once with the tuner's own limit.

`in_order`: a round reads two neighbours of a recorded run, as the tuner measures, so that both have nearly
the same clock. `shuffled`: each time comes from anywhere in the file, so that the clock of the two differs as
it did over all runs.

The target is judged in order with at most 30 samples: of two that are 2 % apart the faster wins in at least
95 % of the seeds, and of two that are equal the incumbent stays in at least 95 %.
"""

from __future__ import annotations

import argparse
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
REPLAY = ROOT / "build" / "release" / "bin" / "noise_replay"


def recorded(path: pathlib.Path) -> dict:
    data = path.read_bytes()
    document = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    runs = [[time * 1e3 for time in entry["times"]] for entry in document["cache"].values()]
    if not runs or any(len(run) < 2 for run in runs):
        raise SystemExit(f"{path}: every measurement needs at least two samples")
    return {"name": path.name.split(".")[0], "runs_us": runs}


def reached(replay: dict) -> bool:
    wins = {
        row["second_is_faster_by_percent"]: row["second_wins"] for row in replay["in_order"]["at_most_30"]
    }
    return wins[2] >= 0.95 and wins[0] <= 0.05 and wins[-2] <= 0.05


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    subprocess.run([ROOT / "dev", "build", "release", "noise_replay"], check=True, stdout=sys.stderr)
    files = {}
    with tempfile.TemporaryDirectory() as folder:
        for path in options.files:
            file = pathlib.Path(folder) / "recorded.json"
            file.write_text(json.dumps(recorded(path)))
            printed = subprocess.run(
                [REPLAY, str(options.seeds), file], check=True, stdout=subprocess.PIPE
            ).stdout
            replay = json.loads(printed)
            files[replay.pop("name")] = {"reached": reached(replay), **replay}
    print(json.dumps({"seeds": options.seeds, "files": files}, indent=2))


if __name__ == "__main__":
    main()
