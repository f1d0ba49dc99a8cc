"""What `--invariant N` gives and what it costs: RMSNorm winners of many N, on one input, compared row by row.

    python3 bench/row_invariance --winners DIR [--json FILE] [--commit COMMIT]

DIR has two folders, `invariant` and `tolerance`, each with NAME.cubin and NAME.json pairs of the same
problems, which differ in N alone:

    cubindctl get rmsnorm_forward --problem N=4096,D=4096,T=bf16 --invariant N --json \\
      -o DIR/invariant/4096.cubin > DIR/invariant/4096.json

Each variant gets the first N rows of one random input. Its rows are compared bit for bit with those that the
variant of the largest N gives, and it is timed with the other folder's variant of its problem. Needs torch.
Exit status 1: rows of the folder `invariant` differ.
"""

import json
import pathlib
import sys
import time

import torch

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
from driver import bind_plan
from machine import toolchain
from timing import Timer, median

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
EPS = 1e-6


class Variant:
    """A winner with the first rows of the input and an output of its own."""

    def __init__(self, file, x, w):
        self.plan = json.loads(file.read_text())
        self.rows = self.plan["problem"]["N"]
        self.y = torch.full_like(x[: self.rows], float("nan"))
        buffers = {"x": x[: self.rows], "w": w, "y": self.y}
        self.launch = bind_plan(file.with_suffix(".cubin").read_bytes(), self.plan, buffers, {"eps": EPS})

    def differing_rows(self, other):
        """How many of the rows that both have differ in a bit."""
        rows = min(self.rows, other.rows)
        bits = torch.int32 if self.y.element_size() == 4 else torch.int16
        return (self.y[:rows].view(bits) != other.y[:rows].view(bits)).any(dim=1).sum().item()


def read_variants(folder, x, w):
    """Of each problem, smallest N first, launched once."""
    variants = sorted((Variant(file, x, w) for file in folder.glob("*.json")), key=lambda one: one.rows)
    for variant in variants:
        variant.launch()
    torch.cuda.synchronize()
    return variants


def compare(timer, invariant, tolerance, largest):
    calls = {"invariant": invariant.launch, "tolerance": tolerance.launch}
    samples = timer.samples(calls, 50)
    both = {"invariant": invariant, "tolerance": tolerance}
    return {
        "problem": invariant.plan["problem"],
        "kernel_time_us": {name: median(samples[name]) for name in calls},
        "differing_rows": {name: one.differing_rows(largest[name]) for name, one in both.items()},
        "configuration": {name: one.plan.get("configuration") for name, one in both.items()},
        "match": {name: one.plan.get("match") for name, one in both.items()},
    }


def main():
    parser = command_line.make_parser(__doc__, optional=["commit"])
    parser.add_argument("--winners", required=True, type=pathlib.Path, help="folder of the two folders")
    parser.add_argument("--json", type=pathlib.Path, help="file for the results")
    arguments = parser.parse_args()

    problems = [json.loads(f.read_text())["problem"] for f in arguments.winners.glob("invariant/*.json")]
    if not problems:
        parser.error(f"{arguments.winners}/invariant holds no NAME.json")
    rows, columns, dtype = max(p["N"] for p in problems), problems[0]["D"], TYPES[problems[0]["T"]]
    torch.manual_seed(time.time_ns())  # fresh inputs each time
    x = torch.randn(rows, columns, device="cuda", dtype=torch.float32).to(dtype)
    w = torch.randn(columns, device="cuda", dtype=torch.float32).to(dtype)
    sets = {name: read_variants(arguments.winners / name, x, w) for name in ("invariant", "tolerance")}
    largest = {name: variants[-1] for name, variants in sets.items()}
    timer = Timer()
    timer.warm_up()
    results = [
        compare(timer, i, t, largest) for i, t in zip(sets["invariant"], sets["tolerance"], strict=True)
    ]
    for result in results:
        times, differing = result["kernel_time_us"], result["differing_rows"]
        print(
            f"N={result['problem']['N']:<6} us: invariant {times['invariant']:7.2f}  tolerance {times['tolerance']:7.2f}"
            f"  |  differing rows: invariant {differing['invariant']}, tolerance {differing['tolerance']}"
            f"  |  {result['configuration']['invariant']}"
        )
    if arguments.json:
        report = {"toolchain": toolchain(arguments.commit), "problems": results}
        command_line.write(report, arguments.json)
    if any(result["differing_rows"]["invariant"] for result in results):
        sys.exit("rows differ although invariance was asked for")


if __name__ == "__main__":
    main()
