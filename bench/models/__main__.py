"""The training step of whole models: torch, torch.compile, Liger, and replace() with each of the first two.

    python3 bench/models [--models llama gpt2 ...] [--sides torch cubind ...] [--steps 30] --output FILE

Needs the package `cubind` with its programs, torch, transformers and a GPU; Liger (`liger_kernel`) is left
out where it is not installed. A first process runs two steps with cubind and records the problems; these are
tuned, from an empty store. Then each model is measured in a process of its own: all sides take turns, step by
step. Prints the median milliseconds of a step with its 95 % interval, and the peak of memory above what is
allocated between steps.
Exit status 1: torch or cubind failed, or the mean loss of a side is further than 2 % from torch's.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from cubind import programs

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
from daemon import Daemon

CHILD = pathlib.Path(__file__).with_name("child.py")
NAMES = ("llama", "llama_4096", "gpt2", "bert")
SIDES = ("torch", "cubind", "liger", "torch_compiled", "cubind_compiled")
LOSS_SHARE = 0.02


def child(arguments, environment, seconds):
    run = subprocess.run(
        [sys.executable, CHILD, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    if run.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)}: exit code {run.returncode}\n{run.stderr[-3000:]}")
    return json.loads(run.stdout.splitlines()[-1])


def tune(daemon, name):
    """How many problems, and the seconds to record and to tune them."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        child(
            ["record", name],
            {"CUBIND_ADDRESS": daemon.address, "CUBIND_RECORD": f"{folder}/shapes.jsonl"},
            seconds=300,
        )
        recorded = time.monotonic()
        lists = sorted(pathlib.Path(folder).iterdir())
        for shapes in lists:
            daemon.call("tune", "--shapes", str(shapes), seconds=300)
        problems = sum(len(shapes.read_text().splitlines()) for shapes in lists)
    return {
        "problems": problems,
        "record_s": recorded - start,
        "tune_s": time.monotonic() - recorded,
    }


def table(result):
    tuning = result["tuning"]
    lines = [f"{result['model']}: {tuning['problems']} problems tuned in {tuning['tune_s']:.1f} s"]
    torch_ms = result["sides"].get("torch", {}).get("median_ms")
    for side, found in result["sides"].items():
        low, high = found["interval_ms"]
        ratio = f"({torch_ms / found['median_ms']:.3f} x torch)" if torch_ms else ""
        lines.append(
            f"  {side:16} {found['median_ms']:8.2f} ms [{low:.2f}, {high:.2f}] {ratio}  "
            f"{found['peak_gib']:.2f} GiB  loss {found['mean_loss']:.3f}"
        )
    return "\n".join([*lines, *(f"  {side}: {error}" for side, error in result["errors"].items())])


def is_wrong(result):
    losses = {side: found["mean_loss"] for side, found in result["sides"].items()}
    if "torch" in result["errors"] or any(side.startswith("cubind") for side in result["errors"]):
        return True
    base = losses.get("torch")
    return base is not None and any(abs(loss / base - 1) > LOSS_SHARE for loss in losses.values())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--output", type=pathlib.Path, required=True, help="file for the results")
    parser.add_argument("--commit", help="what to record as the commit")
    arguments = parser.parse_args()
    results = []
    with Daemon(programs.program("cubind").parent) as daemon:
        for name in arguments.models:
            tuning = tune(daemon, name)
            given = ["measure", name, str(arguments.steps), *arguments.sides]
            result = child(given, {"CUBIND_ADDRESS": daemon.address}, seconds=600)
            results.append({**result, "tuning": tuning, "commit": arguments.commit})
            print(table(results[-1]), flush=True)
            arguments.output.write_text(json.dumps(results, indent=1) + "\n")
    if any(is_wrong(result) for result in results):
        sys.exit("a side failed, or its losses differ from torch's")


if __name__ == "__main__":
    main()
