"""The training step of whole models: torch, torch.compile, Liger, and replace() with each of the first two.

    python3 bench/models [--models llama gpt2 ...] [--sides torch cubind ...] [--steps 50] --output FILE

Needs the package `cubind` with its programs, torch, transformers and a GPU; Liger (`liger_kernel`) is left
out where it is not installed. From an empty store, a process replaces the operators and calls
cubind.torch.tune(); a second one does so again. Then each model is measured in a process of its own: all
sides take turns, step by step, with the same batches. `chunked`: replace(chunked_loss=True); `detached`:
replace(detached_logits=True). `torch_eager` and `torch_flex`: the other implementations of attention in
transformers. In batches of `_padded` half of the tokens are real, those of `_packed` are sequences of
lognormal lengths. Prints the median milliseconds of a step with its 95 % interval, the peak of memory above
what is allocated between steps, the share of the GPU's time in kernels of cubind, how far the losses are
from torch's (the root mean square of their relative differences), and the median of torch.compile's time
over that of replace() with torch.compile, step by step.
Exit status 1: torch or cubind failed, tuning took more than a minute or left something for the second
process, or losses of cubind are further from torch's than twice those of torch.compile (or than 2 %).
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

from cubind import programs

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
from daemon import Daemon

CHILD = pathlib.Path(__file__).with_name("child.py")
DECODERS = ("llama", "qwen3", "mistral", "gemma2")
NAMES = (
    *(name + batch for name in DECODERS for batch in ("", "_padded", "_packed")),
    *("llama_4096", "gpt2", "bert", "phi3", "vit", "block"),
)
SIDES = (
    *("torch", "torch_eager", "torch_flex", "cubind", "cubind_chunked", "liger"),
    *("torch_compiled", "cubind_compiled", "cubind_detached_compiled"),
)
LOSS_SHARE = 0.02
TUNE_S, AGAIN_S = 60, 10  # of the first process, and of one for which everything is known


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


def difference(losses, base):
    """Root mean square of the relative differences."""
    return math.sqrt(
        statistics.fmean((loss / other - 1) ** 2 for loss, other in zip(losses, base, strict=True))
    )


def add_differences(sides):
    """To each side how far its losses are from torch's."""
    if torch := sides.get("torch"):
        for found in sides.values():
            found["loss_difference"] = difference(found["losses"], torch["losses"])


def table(result):
    lines = [
        f"{result['model']}, {side}: {first['problems']} problems tuned in {first['tune_s']:.1f} s, "
        f"by the next process in {result['tuned_again'][side]['tune_s']:.1f} s"
        for side, first in result["tuned"].items()
    ]
    torch_ms = result["sides"].get("torch", {}).get("median_ms")
    for side, found in result["sides"].items():
        low, high = found["interval_ms"]
        ratio = f"({torch_ms / found['median_ms']:.3f} x torch)" if torch_ms else ""
        lines.append(
            f"  {side:16} {found['median_ms']:8.2f} ms [{low:.2f}, {high:.2f}] {ratio}  "
            f"{found['peak_gib']:.2f} GiB  {found['share']:6.1%} in cubind's kernels  losses differ by {found.get('loss_difference', math.nan):.2e}"
        )
    if paired := result.get("over_torch_compiled"):
        lines.append("  cubind_compiled: {:.3f} [{:.3f}, {:.3f}] x torch_compiled".format(*paired))
    return "\n".join([*lines, *(f"  {side}: {error}" for side, error in result["errors"].items())])


def faults(result):
    told = [
        f"{side}: {error}"
        for side, error in result["errors"].items()
        if side == "torch" or side.startswith("cubind")
    ]
    for which, limit in (("tuned", TUNE_S), ("tuned_again", AGAIN_S)):
        for side, found in result[which].items():
            told += [f"{side}: {text}" for text in found["failed"]]
            if found["tune_s"] > limit:
                told.append(f"{side}: {which} took {found['tune_s']:.0f} s, at most {limit} are allowed")
    compiled = result["sides"].get("torch_compiled", {}).get("loss_difference")
    allowed = LOSS_SHARE if compiled is None else 2 * compiled
    return told + [
        f"{side}: losses differ from torch's by {found['loss_difference']:.2e}, {allowed:.2e} are allowed"
        for side, found in result["sides"].items()
        if side.startswith("cubind") and found.get("loss_difference", 0) > allowed
    ]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--output", type=pathlib.Path, required=True, help="file for the results")
    parser.add_argument("--commit", help="what to record as the commit")
    arguments = parser.parse_args()
    # Compiled and eager models need the same kernels.
    tuned_sides = [side for side in arguments.sides if side in ("cubind", "cubind_chunked")]
    results, told = [], []
    with Daemon(programs.program("cubind").parent) as daemon:
        environment = {"CUBIND_ADDRESS": daemon.address}
        for name in arguments.models:
            tuned, again = (child(["tune", name, *tuned_sides], environment, seconds=300) for _ in range(2))
            given = ["measure", name, str(arguments.steps), *arguments.sides]
            result = child(given, environment, seconds=600)
            result |= {"tuned": tuned, "tuned_again": again, "commit": arguments.commit}
            add_differences(result["sides"])
            results.append(result)
            told += [f"{name}, {fault}" for fault in faults(result)]
            print(table(result), flush=True)
            arguments.output.write_text(json.dumps(results, indent=1) + "\n")
    if told:
        sys.exit("\n".join(told))


if __name__ == "__main__":
    main()
