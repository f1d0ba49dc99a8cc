"""The training step of whole models: torch, torch.compile, Liger, and replace() with each of the first two.

    python3 bench/models [--models llama gpt2 ...] [--sides torch cubind ...] [--steps 50] --output FILE

Needs the package `cubind` with its programs, torch, transformers and a GPU; Liger (`liger_kernel`) is left
out where it is not installed. From an empty store, a process replaces the operators and calls
cubind.torch.tune() for all models; the one that measures does so again. Each model is measured in a process
of its own: all sides take turns, step by step, with the same batches. `chunked`: replace(chunked_loss=True);
`detached`: replace(detached_logits=True). `torch_eager` and `torch_flex`: the other implementations of
attention in transformers. `torch_float32` is the judge of losses: float32 (products in TF32), with weights
that are rounded to bf16 after each step. In batches of `_padded` half of the tokens are real, those of
`_packed` are sequences of lognormal lengths. `--together N` compiles N models at a time, in the memory of
one GPU.

Prints the median milliseconds of a step with its 95 % interval, its ratio to the fastest side's, step by
step, the peak of memory above what is allocated between steps, the share of the GPU's time in kernels of
cubind, how far the losses are from torch's and from float32's (the root mean square of their relative
differences), and the median of torch.compile's time over that of replace() with torch.compile, step by step.
Exit status 1: torch or cubind failed, a compiled side ran none of the kernels that were chosen for it,
tuning took more than a minute or left something for the second process, losses of cubind are further from
torch's than twice those of torch.compile (or than 2 %), or further from float32's than 1.2 times the fastest
other side's.
"""

import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

from cubind import programs

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
from daemon import Daemon

CHILD = pathlib.Path(__file__).with_name("child.py")
DECODERS = ("llama", "qwen3", "mistral", "gemma2")
NAMES = (
    *(name + batch for name in DECODERS for batch in ("", "_padded", "_packed")),
    *("llama_4096", "gpt2", "bert", "mixtral", "phi3", "vit", "block"),
)
SIDES = (
    *("torch", "torch_eager", "torch_flex", "torch_float32", "cubind", "cubind_chunked", "liger"),
    *("torch_compiled", "cubind_compiled", "cubind_detached_compiled"),
)
LOSS_SHARE, OF_FASTEST = 0.02, 1.2
ROUNDING = {"torch.bfloat16": 2**-8, "torch.float32": 2**-24}
CHOSEN = "is cubind's: its kernels are loaded"  # in report()
TUNE_S, AGAIN_S = 60, 10  # of the first process, and of one for which everything is known


class Child:
    """A process of child.py."""

    def __init__(self, arguments, environment):
        self.name = " ".join(arguments[:2])
        self.process = subprocess.Popen(
            [sys.executable, CHILD, *arguments],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def prepare(self):
        """Returns when it is ready, or has ended."""
        while self.process.stdout.readline() not in ("", "ready\n"):
            pass

    def result(self, seconds):
        try:
            output, _ = self.process.communicate("\n", timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        if self.process.returncode != 0:
            raise RuntimeError(f"{self.name}: exit code {self.process.returncode}")
        return json.loads(output.splitlines()[-1])


def difference(losses, base):
    """Root mean square of the relative differences."""
    return math.sqrt(
        statistics.fmean((loss / other - 1) ** 2 for loss, other in zip(losses, base, strict=True))
    )


def add_differences(sides):
    """To each side how far its losses are from torch's and from float32's."""
    for base, name in (("torch", "loss_difference"), ("torch_float32", "float32_difference")):
        if base in sides:
            for found in sides.values():
                found[name] = difference(found["losses"], sides[base]["losses"])


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
        differences = [found.get(one, math.nan) for one in ("loss_difference", "float32_difference")]
        lines.append(
            f"  {side:24} {found['median_ms']:8.2f} ms [{low:.2f}, {high:.2f}] {ratio}  "
            + "{:.3f} [{:.3f}, {:.3f}] of the fastest  ".format(*result["over_fastest"][side])
            + f"{found['peak_gib']:.2f} GiB  {found['share']:6.1%} in cubind's kernels  "
            + "losses differ by {:.2e}, from float32's by {:.2e}".format(*differences)
        )
    for side, found in result["over_torch_compiled"].items():
        lines.append("  {}: {:.3f} [{:.3f}, {:.3f}] x torch_compiled".format(side, *found))
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
    told += [*far_from_float32(result["sides"])]
    if CHOSEN in result["report"]:
        told += [
            f"{side}: kernels were chosen for its graph, and none ran"
            for side, found in result["sides"].items()
            if side.startswith("cubind") and side.endswith("compiled") and not found["share"]
        ]
    compiled = result["sides"].get("torch_compiled", {})
    allowed = LOSS_SHARE
    if "loss_difference" in compiled:  # losses in bf16 may differ in their last bit
        allowed = max(2 * compiled["loss_difference"], ROUNDING[compiled["loss_dtype"]])
    return told + [
        f"{side}: losses differ from torch's by {found['loss_difference']:.2e}, {allowed:.2e} are allowed"
        for side, found in result["sides"].items()
        if side.startswith("cubind") and found.get("loss_difference", 0) > allowed
    ]


def far_from_float32(sides):
    if "torch_float32" not in sides:
        return
    others = [found for side, found in sides.items() if side.startswith("torch") and side != "torch_float32"]
    allowed = OF_FASTEST * min(others, key=lambda found: found["median_ms"])["float32_difference"]
    for side, found in sides.items():
        if side.startswith("cubind") and found["float32_difference"] > allowed:
            yield f"{side}: losses differ from float32's by {found['float32_difference']:.2e}, {allowed:.2e} are allowed"


def measured(names, sides, steps, environment):
    """Yields each model's name and result, or None and why there is none."""
    children = [Child(["measure", name, str(steps), *sides], environment) for name in names]
    for child in children:
        child.prepare()
    for name, child in zip(names, children, strict=True):
        try:
            result = child.result(seconds=600)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            yield name, None, str(error)
            continue
        add_differences(result["sides"])
        yield name, result, ""


def main():
    parser = command_line.make_parser(__doc__, required=["output"], optional=["commit"])
    parser.add_argument("--models", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--together", type=int, default=1, help="models that are compiled at a time")
    arguments = parser.parse_args()
    models, results, told = arguments.models, [], []
    with Daemon(programs.program("cubind").parent) as daemon:
        turn = str(daemon.store.with_name("turn"))
        environment = {"CUBIND_ADDRESS": daemon.address, "CUBIND_BENCH_TURN": turn}
        tuned = Child(["tune", ",".join(models), *arguments.sides], environment).result(300 * len(models))
        for first in range(0, len(models), arguments.together):
            names = models[first : first + arguments.together]
            for name, result, why in measured(names, arguments.sides, arguments.steps, environment):
                if result is None:
                    told.append(f"{name}: {why}")
                    continue
                result |= {"tuned": tuned[name], "commit": arguments.commit}
                results.append(result)
                told += [f"{name}, {fault}" for fault in faults(result)]
                print(table(result), flush=True)
                command_line.write(results, arguments.output)
    if told:
        sys.exit("\n".join(told))


if __name__ == "__main__":
    main()
