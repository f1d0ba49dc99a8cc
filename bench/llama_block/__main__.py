"""A Llama block, forward and backward, and its training: cubind's operators compared with torch,
torch.compile and Liger-Kernel.

    python3 bench/llama_block [--linear] [--json FILE]

Needs torch and the package `cubind`; on a GPU (bf16, hidden 4096, 32 heads, 4096 tokens) a daemon, which
CUBIND_EMBEDDED=1 starts, and it measures Liger-Kernel's Triton operators where `liger_kernel` can be
imported. Without a GPU a small block of float32 runs, where cubind's operators are torch's formulas.

1. What the daemon has no record for is tuned, before this process takes GPU memory.
2. Each side's result and gradients are compared with those of a wider type, then all sides are timed in turn.
3. Torch's and cubind's sides train, and their losses are compared.

Attention and norms are cubind's, with --linear the products of the linear layers too, in a side of its own. A
side that fails is reported and stops nothing. Exit status 1: a side of torch or cubind failed, a result is
wrong, or losses differ.
"""

import argparse
import json
import pathlib
import sys
import traceback

import cubind
import cubind.torch
import torch

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import checks
import measuring
from block import LLAMA, SMALL, make_model
from sides import all_sides
from tuned import problems, tune_missing


def say(text):
    print(f"bench/llama_block: {text}", file=sys.stderr, flush=True)


class Bench:
    """The sides that still run, and what is known of all. A side that fails leaves, with its reason in
    results["failed"]."""

    def __init__(self, options, device, dtype, sizes):
        self.options, self.device, self.dtype, self.sizes = options, device, dtype, sizes
        self.sides, failed = all_sides(options.linear)
        self.results = {"sizes": vars(sizes), "dtype": str(dtype), "failed": failed}
        self.blocks = {}

    def try_each(self, what, call, names=None):
        """{name: call(name)} of the sides, or of those of the names, that have not failed."""
        done = {}
        for name in list(self.sides) if names is None else [name for name in names if name in self.sides]:
            say(f"{what}: {name}")
            try:
                done[name] = call(name)
            except Exception:
                self.results["failed"][name] = traceback.format_exc(limit=6)[-3000:]
                say(self.results["failed"][name])
                del self.sides[name]
        return done

    def model(self, name):
        """The same parameters for each side."""
        return make_model(self.sizes, self.sides[name].operators, self.device, self.dtype)

    def measure(self):
        """Every side's results are compared, and its passes timed."""
        both = checks.Pass(self.sizes, self.device, self.dtype)
        backend = self.options.backend
        self.blocks = self.try_each(
            "making", lambda name: self.sides[name].block_of(self.model(name), backend)
        )
        excess = self.try_each("checking", lambda name: both.worst_excess(self.blocks[name]))
        say("timing")
        calls = {name: both.call_of(self.blocks[name]) for name in self.sides}
        times = measuring.in_turn(calls, self.options.rounds, self.device)
        ms = {name: measuring.summary(values) for name, values in times.items()}
        self.results |= {"worst_excess": excess, "ms": ms}

    def train(self):
        """Torch's and cubind's sides train, and their losses are compared."""
        names = [name for name in self.sides if not name.startswith("liger")]
        curves = self.try_each("training", self.curve, names)
        self.results |= {"losses": curves, "loss_check": checks.compare_losses(curves, self.dtype)}

    def curve(self, name):
        """The losses. The block, compiled or not, is the one that was timed, and its parameters are as they
        were made."""
        model, block = self.model(name), self.blocks[name]
        model.block = getattr(block, "_orig_mod", block)
        return checks.train(model, block, self.options.steps)


def prepare(options, sizes):
    """(client, facts): the daemon of the operators, which has a record for each problem, and what it
    serves."""
    say("tuning")
    listed = problems(sizes, options.linear)
    served = tune_missing(lambda: cubind.connect(timeout=120), listed, options.tune_seconds)
    client = cubind.connect(timeout=120)
    cubind.torch.use(client)
    cubind.torch.strict()
    # It needs Triton and NVRTC.
    from machine import toolchain  # noqa: PLC0415

    made_with = toolchain(options.commit) | {"timer": "CUDA events", "policy": "warm"}
    return client, {"toolchain": made_with, "served": served}


def table(results):
    """One line for each side: milliseconds forward + backward, and what share of torch's time that is."""
    theirs = results["ms"].get("torch", {"median": float("nan")})["median"]
    lines = [
        "| side | forward + backward, ms | range | torch / side | error / allowed |",
        "|---|---|---|---|---|",
    ]
    for name, ms in results["ms"].items():
        ratio = theirs / ms["median"]
        span, worst = f"{ms['least']:.3f} - {ms['most']:.3f}", results["worst_excess"][name]
        lines.append(f"| {name} | {ms['median']:.3f} | {span} | {ratio:.3f} | {worst:.2f} |")
    lines += [f"| {name} | {why.strip().splitlines()[-1]} | | | |" for name, why in results["failed"].items()]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--linear", action="store_true", help="a side with cubind's products too")
    parser.add_argument("--rounds", type=int, default=30, help="samples of each side")
    parser.add_argument("--steps", type=int, default=50, help="training steps")
    parser.add_argument("--backend", default="inductor", help="of torch.compile")
    parser.add_argument("--tune-seconds", type=float, default=100, help="no tuning begins after these")
    parser.add_argument("--commit", help="what to record as the commit; default: git's HEAD")
    parser.add_argument("--json", type=pathlib.Path, help="where to write the results")
    options = parser.parse_args()
    if torch.cuda.is_available():
        client, facts = prepare(options, LLAMA)
        bench = Bench(options, "cuda", torch.bfloat16, LLAMA)
    else:
        client, facts = None, {}
        bench = Bench(options, "cpu", torch.float32, SMALL)
    for part in (bench.measure, bench.train):
        part()
        if client is not None:  # one for each problem, unless the operators asked for others
            facts["calls_to_the_daemon"] = client.calls
        if options.json:
            options.json.write_text(json.dumps(facts | bench.results, indent=1) + "\n")
    print(table(bench.results))
    print(bench.results["loss_check"]["verdict"])
    return 0 if checks.all_is_well(bench.results) else 1


if __name__ == "__main__":
    sys.exit(main())
