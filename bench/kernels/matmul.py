"""Kernels around a matrix product checked against float64 and timed next to torch, without a daemon.

    python3 bench/kernels/matmul.py [--kernel matmul] [--json FILE] [--samples 8] [--limit N] [--quick]

First every engine over edge shapes, all layouts, bias and activations, NaN and infinity, with the defaults
and a sample of the other valid configurations: each output element within the spec's tolerance, nothing
written beyond an output, the same bits twice. Then all valid configurations of larger problems by time. Needs
torch and NVRTC. Exit status 1: a result is wrong.
"""

import pathlib
import random
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
import torch
from checking import Checker, short
from products import PRODUCTS
from timing import Timer, median


class Bench(Checker):
    def __init__(self, kernel):
        super().__init__(kernel)
        self.product = PRODUCTS[kernel]

    def sample(self, p, count, seed):
        """The default, and others so that each engine, tile and split has its turn over the problems."""
        valid = self.configurations(p)
        default = self.default(p)
        rest = random.Random(seed).sample(valid, min(count, len(valid)))
        for engine in (1, 3):  # those of wgmma
            wgmma = [c for c in valid if c["ENGINE"] == engine]
            rest += random.Random(seed + 1).sample(wgmma, min(count, len(wgmma)))
        return [default, *(c for c in rest if c != default)]

    def check(self, count):
        chosen = [(p, self.sample(p, count, i)) for i, p in enumerate(self.product.checked)]
        for p, configurations in chosen:
            for configuration in configurations:
                self.order(p, configuration)
        return self.count_right(self.cases(chosen))

    def cases(self, chosen):
        for i, (p, configurations) in enumerate(chosen):
            operands = self.product(p, i, special=i % 5 == 2)
            truth = operands.truth()
            for configuration in configurations:
                yield f"engine {configuration['ENGINE']} {p['T']}", p, configuration, operands, truth

    def measure(self, p, timer, rounds, limit):
        default, *_ = configurations = self.order_valid(p, limit)
        operands = self.product(p, 1)
        named = {short(c): c for c in configurations}
        calls = {name: self.call(p, c, operands) for name, c in named.items()}
        calls = {name: call for name, call in calls.items() if call}
        calls["torch"] = operands.torch_call()
        first = {name: median(times) for name, times in timer.samples(calls, 3).items()}
        best = sorted((name for name in first if name != "torch"), key=first.get)[:12]
        kept = {name: calls[name] for name in {*best, "torch", short(default)} if name in calls}
        times = {name: median(values) for name, values in timer.samples(kept, rounds).items()}
        return self.report(p, operands, named, first, times)

    def report(self, p, operands, named, first, times):
        flops = 2 * p["M"] * p["N"] * p["K"]

        def row(name, us):
            return {"configuration": named.get(name), "us": us, "tflops": flops / us / 1e6}

        truth = operands.truth()
        ranked = sorted((name for name in times if name != "torch"), key=times.get)
        rows = [
            {**row(name, times[name]), "right": self.is_right(p, named[name], operands, truth)}
            for name in ranked
        ]
        best_of = {}
        for name in sorted((n for n in first if n != "torch"), key=first.get):
            best_of.setdefault(named[name]["ENGINE"], row(name, first[name]))
        torch_row = row("torch", times["torch"])
        print(
            f"{self.label(p)}: torch {torch_row['tflops']:.1f} TFLOP/s ({torch_row['us']:.1f} us), "
            f"{len(named)} configurations"
        )
        for line in rows[:5]:
            wrong = "" if line["right"] else " WRONG"
            print(
                f"    {line['tflops']:7.1f} ({line['us']:.1f} us) {short(line['configuration'])}{wrong}",
                flush=True,
            )
        for engine, line in sorted(best_of.items()):
            print(f"    engine {engine}: {line['tflops']:.1f} {short(line['configuration'])}", flush=True)
        return {
            "problem": p,
            "valid": len(named),
            "torch": torch_row,
            "best": rows,
            "best_of_engine": best_of,
        }


def main():
    parser = command_line.make_parser(__doc__)
    parser.add_argument("--kernel", choices=sorted(PRODUCTS), default="matmul")
    parser.add_argument("--json", type=pathlib.Path, help="where to write all figures")
    parser.add_argument("--samples", type=int, default=8, help="configurations of a checked problem")
    parser.add_argument("--rounds", type=int, default=15, help="samples of each of the fastest")
    parser.add_argument("--limit", type=int, default=0, help="configurations timed at most (0: all)")
    parser.add_argument("--quick", action="store_true", help="check only")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    begun = time.monotonic()
    bench = Bench(options.kernel)
    result = {"device": torch.cuda.get_device_name(0), "torch": torch.__version__}
    result["checked"] = bench.check(options.samples)
    print(f"checked after {time.monotonic() - begun:.0f} s", flush=True)
    result["timed"] = []

    def write():
        result["faults"] = bench.faults
        command_line.write(result, options.json)

    write()
    if not options.quick:
        timer = Timer()
        timer.warm_up()
        for p in bench.product.timed:
            result["timed"].append(bench.measure(p, timer, options.rounds, options.limit))
            write()
            print(f"    after {time.monotonic() - begun:.0f} s", flush=True)
    bench.compiler.close()
    return 1 if bench.faults else 0


if __name__ == "__main__":
    sys.exit(main())
