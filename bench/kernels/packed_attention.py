"""Attention of packed sequences checked against float64 and timed next to torch, without a daemon.

    python3 bench/kernels/packed_attention.py [--json FILE] [--quick] [--passes forward]

First the default and a configuration of each engine over sequences of lengths around the tiles, empty ones, a
thousand of them, with and without gaps, by flags: as bench/kernels/attention.py checks dense heads. Dropout's
mask is read from the outputs, and compared with the formula. Then packed and padded batches by time, next to
torch's varlen_attn, compiled flex_attention, and its flash and cuDNN backends on the padded batch. Needs
torch and NVRTC. Exit status 1: a result is wrong; 3: a kernel did not end within 30 s.
"""

import itertools
import math
import pathlib
import random
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
import torch
from attention import Bench, engine_of
from checking import short
from packed_operands import KEPT, PASSES, Forward, competitors, kept, problem
from products import GUARD
from timing import Timer, median

# Queries and keys of each sequence, and the gap behind it; a first pair without rows has a gap before all.
SEQUENCES = {
    "one": [(777, 777, 0)],
    "single": [(1, 1, 0)],
    "tiles": [(n, n, 0) for n in (64, 1, 127, 0, 128, 63, 129, 65, 5, 256)],
    "thousand": [(n % 9, n % 9, 0) for n in range(1000)],
    "gaps": [(0, 0, 37), (100, 100, 0), (1, 1, 300), (0, 0, 0), (64, 64, 1), (200, 200, 90)],
    "cross": [(3, 100, 0), (100, 3, 0), (0, 50, 0), (50, 0, 0), (129, 257, 0), (1, 300, 0)],
    "cross gaps": [(0, 0, 10), (3, 100, 5), (100, 3, 70), (0, 50, 1), (50, 0, 2), (129, 257, 130)],
}
FLAGS = [
    {},
    {"CAUSAL": 1},
    {"CAUSAL": 1, "LEFT": 40},
    {"LEFT": 33, "RIGHT": 17, "SOFT_CAP": 20},
    {"CAUSAL": 1, "SOFT_CAP": 50},
    {"CAUSAL": 1, "DROPOUT": 1},
    {"LEFT": 70, "DROPOUT": 1, "SOFT_CAP": 50},
]


def flags_of(name):
    return {"GAPS": int("gaps" in name), "CROSS": int("cross" in name)}


class PackedBench(Bench):
    without = ()  # names of competitors that are left out

    def label(self, p):
        flags = " ".join(
            f"{k}={v}" for k, v in p.items() if k.isupper() and v and len(k) > 2 and k not in ("HKV",)
        )
        return f"{p['N']} sequences {p['SQ']}x{p['SK']} ({p['HQ']}:{p['HKV']}, {p['D']}) {p['T']} {flags}"

    def kinds(self):
        """(sequences, head size, type, flags): each of the flags with sequences and sizes that change."""
        sizes = itertools.cycle([(64, "bf16"), (128, "f16"), (256, "bf16"), (80, "bf16"), (128, "bf16")])
        for (name, sequences), flags in itertools.product(SEQUENCES.items(), FLAGS):
            yield sequences, *next(sizes), {**flags, **flags_of(name)}

    def pool_of(self, D, T, flags, count):
        large = {**problem([(4096, 4096, 0)] * 4, 16, 16, D, T), **flags}
        return self.pool(large, {**large, "N": 64}, count)

    def check(self, count=1):
        kinds = [(s, D, T, flags, self.pool_of(D, T, flags, count)) for s, D, T, flags in self.kinds()]
        for sequences, D, T, flags, pool in kinds:
            for configuration in itertools.chain(*pool):
                self.order(problem(sequences, 4, 2, D, T, **flags), configuration)
        return self.count_right(self.cases(kinds))

    def cases(self, kinds):
        for i, (sequences, D, T, flags, pool) in enumerate(kinds):
            p = problem(sequences, *((4, 2), (3, 3), (4, 1))[i % 3], D, T, **flags)
            operands = self.direction(p, sequences, i, rows=i % 2 == 0)
            truth = operands.truth()
            for configuration in itertools.chain(*pool):
                name = f"{self.direction.name} engine {engine_of(configuration)}"
                yield name, p, configuration, operands, truth

    def check_alone(self):
        """Whether each sequence has the bits that it has by itself."""
        differing = 0
        for name, flags in (("tiles", {"CAUSAL": 1}), ("gaps", {"CAUSAL": 1, "LEFT": 40, "GAPS": 1})):
            sequences = SEQUENCES[name]
            p = problem(sequences, 4, 2, 128, "bf16", **flags)
            operands = self.direction(p, sequences, 3, rows=True)
            (bounds, lengths), _ = operands.bounds
            for configuration in itertools.chain(*self.pool_of(128, "bf16", flags, 2)):
                self.call(p, configuration, operands)()
                for at, n in zip(bounds, lengths):
                    if n == 0:
                        continue
                    own = problem([(n, n, 0)], 4, 2, 128, "bf16", **flags)
                    alone = self.direction(own, [(n, n, 0)], 3, rows=True)
                    for key, tensor in alone.inputs.items():
                        tensor.copy_(operands.rows_of(key, operands.inputs[key], slice(at, at + n), tensor))
                    self.call(own, configuration, alone)()
                    for key, output in alone.outputs.items():
                        whole = operands.outputs[key][:-GUARD]
                        mine = output[:-GUARD]
                        part = operands.rows_of(key, whole, slice(at, at + n), mine)
                        differing += not torch.equal(part, mine)
        print(f"{self.direction.name}: {differing} outputs of sequences differ from those by themselves")
        if differing:
            self.faults.append({"fault": f"{differing} outputs of sequences differ from those by themselves"})
        return differing

    def check_dropout(self):
        """The mask as unit values show it, of 2^24 weights, and how many of them are kept."""
        p = problem([(256, 256, 0)], 256, 256, 256, "bf16", DROPOUT=1)
        operands = self.direction(p, [(256, 256, 0)], 5)
        for name in ("q", "k", "v", "d_o"):
            if name in operands.inputs:
                unit = torch.eye(256, device="cuda", dtype=operands.dtype)
                operands.inputs[name].copy_(0 if name in "qk" else unit.expand(256, -1, -1))
        mask = kept(operands.seed, 256, 0, 256, 256)
        draws, part = mask.numel(), KEPT / 65536
        off = (mask.double().mean().item() - part) / math.sqrt(part * (1 - part) / draws)
        same = True
        output = "o" if self.direction is Forward else "dv"
        if output == "dv":
            operands.buffers["lse"].fill_(math.log(256))
        for configuration in itertools.chain(*self.pool_of(256, "bf16", {"DROPOUT": 1}, 2)):
            call = self.call(p, configuration, operands)
            call()
            shown = operands.outputs[output][: 256**3].view(256, 256, 256) > 0
            same &= torch.equal(shown.mT if output == "dv" else shown, mask)
            call.unload()
        print(
            f"{self.direction.name}: dropout's mask is {'the formula' if same else 'WRONG'}, {off:+.2f} sigma off"
        )
        if not same or abs(off) > 5:
            self.faults.append({"problem": p, "fault": "dropout's mask"})
        return {"draws": draws, "sigma": off, "same": same}

    def competitors(self, operands):
        found = competitors(operands)
        return {name: make for name, make in found.items() if name not in self.without}

    def measure(self, p, sequences, configurations, timer, rounds):
        operands = self.direction(p, sequences, 1, rows=True)
        named = {short(c): c for c in configurations}
        calls = {name: self.call(p, c, operands) for name, c in named.items()}
        others = self.others(p, operands)
        first = {name: median(times) for name, times in timer.samples({**calls, **others}, 3).items()}
        best = sorted(calls, key=first.get)[:3]
        kept_calls = {name: calls[name] for name in {*best, short(configurations[0])}}
        times = {
            name: median(values) for name, values in timer.samples({**kept_calls, **others}, rounds).items()
        }
        flops = operands.flops()
        line = {
            "pass": operands.name,
            "problem": p,
            "longest": max(s[0] for s in sequences),
            "us": dict(sorted(times.items(), key=lambda one: one[1])),
            "tflops": {name: flops / us / 1e6 for name, us in times.items()},
            "default": short(configurations[0]),
            "right": self.is_right(p, named[best[0]], operands, operands.truth(torch.float32)),
        }
        ours, theirs = (min((times[n] for n in names), default=None) for names in (kept_calls, others))
        line["ratio"] = theirs / ours if theirs else None
        print(f"{operands.name} {self.label(p)}: {ours:.1f} us, {flops / ours / 1e6:.0f} TFLOP/s", end="")
        for name in sorted(others, key=times.get):
            print(f", {name} {times[name] / ours:.2f}", end="")
        print(f"; {best[0]}, default {times[short(configurations[0])] / ours:.2f}", flush=True)
        return line


def timed():
    """(problem, sequences): packed and padded batches whose mean length is half of the longest."""
    for D, HQ, HKV in ((128, 16, 16), (64, 32, 8), (256, 8, 4)):
        lengths = [1 + 4095 * i // 15 for i in range(16)]
        random.Random(0).shuffle(lengths)
        for gaps in (0, 1):
            sequences = [(n, n, gaps * (4096 - n)) for n in lengths]
            yield problem(sequences, HQ, HKV, D, "bf16", CAUSAL=1, GAPS=gaps, CROSS=0), sequences


def main():
    parser = command_line.make_parser(__doc__)
    parser.add_argument("--json", type=pathlib.Path, help="where to write all figures")
    parser.add_argument("--rounds", type=int, default=15, help="samples of each of the fastest")
    parser.add_argument("--limit", type=int, default=0, help="configurations timed at most (0: all)")
    parser.add_argument("--quick", action="store_true", help="check only")
    parser.add_argument("--timed", action="store_true", help="time only")
    parser.add_argument("--without", nargs="+", default=[], help="what is not compared: flex_attention")
    parser.add_argument("--passes", nargs="+", choices=PASSES, default=[*PASSES])
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_grad_enabled(False)
    begun = time.monotonic()
    result = {"device": torch.cuda.get_device_name(0), "torch": torch.__version__}
    result |= {"checked": {}, "dropout": {}, "alone": {}, "timed": []}
    benches = [PackedBench(PASSES[name]) for name in options.passes]
    PackedBench.without = options.without
    timer = Timer()
    timer.warm_up()

    def write():
        result["faults"] = [fault for bench in benches for fault in bench.faults]
        command_line.write(result, options.json)

    for bench in benches:
        ordered = [] if options.quick else [bench.order_valid(p, options.limit) for p, _ in timed()]
        if not options.timed:
            result["checked"] |= bench.check()
            result["dropout"][bench.direction.name] = bench.check_dropout()
            result["alone"][bench.direction.name] = bench.check_alone()
            print(f"checked after {time.monotonic() - begun:.0f} s", flush=True)
            write()
        for (p, sequences), configurations in zip(timed(), ordered):
            result["timed"].append(bench.measure(p, sequences, configurations, timer, options.rounds))
            write()
    write()
    for bench in benches:
        bench.compiler.close()
    sys.exit(1 if result["faults"] else 0)


if __name__ == "__main__":
    main()
