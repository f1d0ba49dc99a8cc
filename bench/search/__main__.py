#!/usr/bin/env python3
"""Which share of the optimum the search finds in recorded tuning spaces, after 25, 50, 100 and 200 trials.

usage: ./dev bench search [--seeds N] [--first-seed S] FILE...

A FILE is a brute-force tuning that others recorded (Kernel Tuner's cache format, gz or plain) or a
specification of parameters and constraints (T1), both as the benchmark hub of AutoTuningAssociation has them.
A search is replayed on the records with each seed: a trial is a configuration that was not tried before,
failed ones count. The share is the time of the fastest record over the time of the fastest found: median and
10th percentile over the seeds. No default configuration is given to the search. A specification is only
counted, and again by brute force in Python.

`kernel_tuner` is the best of Kernel Tuner 1.5.0's own strategies for each space after 100 trials, median and
10th percentile of 50 seeds each (bayes_opt 10); `trials_within` is how many trials it takes to come within so
much of the optimum, averaged over the seeds, where 300 stands for never; `proposal_ms` is the CPU time of one
proposal, averaged over 300 trials.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import convert

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
REPLAY = ROOT / "build" / "release" / "bin" / "search_replay"
TRIALS = (25, 50, 100, 200)
WITHIN = ("3 %", "1 %")

# random_sample, genetic_algorithm, bayes_opt, pso, hybrid_vndx and simulated_annealing were run: the best
# median and the best 10th percentile of a space may be of two of them.
KERNEL_TUNER = {
    "gemm_clblast__RTX_3090": (1.000, 0.983),
    "conv_milo__A100": (0.931, 0.820),
    "dedisp_milo__A100": (0.997, 0.996),
    "pnpoly__RTX_3090": (1.000, 0.992),
}


def summary(shares: list[list[float]]) -> dict:
    result = {}
    for trials, by_seed in zip(TRIALS, zip(*shares)):
        tenth = statistics.quantiles(by_seed, n=10, method="inclusive")[0] if len(by_seed) > 1 else by_seed[0]
        result[str(trials)] = {"median": round(statistics.median(by_seed), 3), "p10": round(tenth, 3)}
    return result


def report(space: dict, printed: dict) -> dict:
    result = {"count": printed["count"], "count_ms": round(printed["count_seconds"] * 1e3, 3)}
    if "conditions" in space:
        result["brute_force_count"] = convert.brute_force_count(space)
    for strategy in ("random", "model"):
        if strategy in printed:
            result[strategy] = summary(printed[strategy]["shares"])
            within = (statistics.mean(by_seed) for by_seed in zip(*printed[strategy]["within"]))
            result[strategy]["trials_within"] = dict(zip(WITHIN, within))
    if "model" in printed:
        result["proposal_ms"] = round(printed["model"]["proposal_ms"], 2)
    if printed["name"] in KERNEL_TUNER:
        median, tenth = KERNEL_TUNER[printed["name"]]
        result["kernel_tuner"] = {"100": {"median": median, "p10": tenth}}
    return result


def mean_at_100(spaces: dict, strategy: str) -> dict | None:
    found = [space[strategy]["100"] for space in spaces.values() if strategy in space]
    return found and {key: round(statistics.mean(one[key] for one in found), 3) for key in ("median", "p10")}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    subprocess.run([ROOT / "dev", "build", "release", "search_replay"], check=True, stdout=sys.stderr)
    spaces = {}
    with tempfile.TemporaryDirectory() as folder:
        for path in options.files:
            space = convert.convert(path)
            file = pathlib.Path(folder) / f"{space['name']}.json"
            file.write_text(json.dumps(space))
            command = [REPLAY, str(options.first_seed), str(options.seeds), file]
            printed = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            spaces[space["name"]] = report(space, printed)
    means = {strategy: mean_at_100(spaces, strategy) for strategy in ("random", "model", "kernel_tuner")}
    print(json.dumps({"seeds": options.seeds, "spaces": spaces, "mean_at_100": means}, indent=2))


if __name__ == "__main__":
    main()
