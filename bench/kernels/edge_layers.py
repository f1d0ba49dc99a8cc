"""The kernels around products and attention on a GPU at odd problems, against float64.

    python3 bench/kernels/edge_layers.py [--kernels NAME...] [--seconds N] [--output FILE]

Sizes are 0, 1, odd, prime, vocabularies to 262,147, rows that no vector divides, more than 2^31 elements; all
types, activations and directions; in some rows of logits NaN, or -infinity as models mask with. The default
of each problem and a sample of other configurations that covers the values of the tunables: each output
element within the spec's tolerance, nothing written beyond an output, the same bits twice. Needs torch and
NVRTC. Exit status 1: a result is wrong; 3: a kernel did not end within 30 s, and the last line names it.
"""

import itertools
import pathlib
import random
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
import torch
from checking import Checker
from layers import LAYERS
from machine import toolchain
from operations import TYPES

LOGITS = [
    (0, 128),
    (1, 1),
    (3, 7),
    (1031, 97),
    (33, 1000),
    (5, 4095),
    (4, 4096),
    (17, 30522),
    (130, 50257),
    (6, 128256),
    (3, 262144),
    (4, 262147),
]
ELEMENTS = [0, 1, 7, 1000, 4097, 65539, (1 << 20) + 1]
TOKENS = [  # with the heads of queries and keys, the rows of cosines, the head size
    (0, 2, 1, 3, 64),
    (1, 1, 1, 1, 2),
    (5, 3, 3, 1, 18),
    (7, 6, 2, 3, 80),
    (33, 1, 1, 33, 128),
    (1025, 32, 8, 7, 128),
    (129, 16, 16, 4096, 64),
    (3, 5, 1, 3, 256),
]


def of_logits():
    sizes = [(*size, T) for size in LOGITS for T in TYPES] + [(16411, 131072, "bf16")]
    return [dict(zip(("N", "D", "T"), one, strict=True)) for one in sizes]


def of_elements():
    kinds = list(itertools.product(TYPES, range(4), (0, 1))) * 2
    sizes = [(N, *kind) for N, kind in zip(itertools.cycle(ELEMENTS), kinds)]
    sizes.append(((1 << 31) + 17, "bf16", 2, 1))
    return [dict(zip(("N", "T", "ACTIVATION", "GATE"), one, strict=True)) for one in sizes]


def of_tokens():
    sizes = [(*size, T, turn) for size in TOKENS for T in TYPES for turn in (0, 1)]
    sizes.append((300007, 56, 1, 4096, 128, "bf16", 0))
    return [dict(zip(("N", "HQ", "HKV", "C", "D", "T", "INVERSE"), one, strict=True)) for one in sizes]


PROBLEMS = {
    "activation_forward": of_elements,
    "activation_backward": of_elements,
    "rotary": of_tokens,
    "cross_entropy": of_logits,
    "cross_entropy_forward": of_logits,
    "cross_entropy_backward": of_logits,
}


class Edge(Checker):
    def operands(self, p, seed):
        """Logits with values that are not finite every other time."""
        special = {"special": bool(seed % 2)} if "D" in p and "C" not in p else {}
        return LAYERS[self.spec.fields["name"]](p, seed, **special)

    def order_all(self, each):
        """The cases, whose compiles begin at once, and the values of tunables in none of them."""
        draw, seen = random.Random(1), set()
        cases = []
        for p in PROBLEMS[self.spec.fields["name"]]():
            chosen = self.spec.sample(p, each, draw, seen, self.device)
            cases.append((p, chosen))
            for configuration in chosen:
                self.order(p, configuration)
        return cases, self.spec.uncovered(seen)

    def run(self, cases, end):
        """The number of configurations that ran."""
        count = 0
        for seed, (p, configurations) in enumerate(cases):
            if time.monotonic() > end:
                break
            operands = self.operands(p, seed)
            truth = operands.truth()
            for configuration in configurations:
                self.is_right(p, configuration, operands, truth)
                count += 1
            del operands, truth
        return count


def main():
    parser = command_line.make_parser(__doc__, optional=["output", "commit"])
    parser.add_argument("--kernels", nargs="+", choices=sorted(PROBLEMS), default=[*PROBLEMS])
    parser.add_argument("--each", type=int, default=3, help="configurations of a problem besides its default")
    parser.add_argument("--seconds", type=float, default=240)
    arguments = parser.parse_args()
    torch.set_grad_enabled(False)
    end = time.monotonic() + arguments.seconds
    checkers = {kernel: Edge(kernel) for kernel in arguments.kernels}
    ordered = {kernel: checker.order_all(arguments.each) for kernel, checker in checkers.items()}
    results = {}
    for kernel, checker in checkers.items():
        cases, uncovered = ordered[kernel]
        total = sum(len(configurations) for _, configurations in cases)
        run = checker.run(cases, end)
        checker.compiler.close()
        torch.cuda.empty_cache()
        results[kernel] = {"cases": total, "run": run, "uncovered": uncovered, "faults": checker.faults}
        print(f"{kernel}: {run} of {total} cases, {len(checker.faults)} wrong, not covered {uncovered}")
    if arguments.output:
        document = {**toolchain(arguments.commit), "kernels": results}
        command_line.write(document, arguments.output)
    return 1 if any(result["faults"] or not result["run"] for result in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
