"""The attention kernel checked against float64 and timed beside torch's attention, without a daemon.

    python3 bench/kernels/attention.py [--json FILE] [--pool 6] [--quick]

First both engines over edge lengths, grouped heads, both head sizes and types, causal or not: each output element
within the spec's tolerance, nothing written beyond the outputs, the same bits twice. Then all valid configurations
of larger problems by time, beside torch's flash and cuDNN backends. Needs torch and NVRTC. Exit status 1: a result
is wrong.
"""

import argparse
import itertools
import json
import pathlib
import random
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "rmsnorm_vs_torch_triton"))

import torch  # noqa: E402
from compiling import Compiler  # noqa: E402
from driver import SCALARS, Kernel, compile_source  # noqa: E402
from matmul import GUARD, TYPES, device_constants, short  # noqa: E402
from spec import Expression, KernelSpec  # noqa: E402
from timing import Timer, median  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

SCALE = 0.1
BACKENDS = {"torch flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
LENGTHS = [1, 17, 63, 64, 65, 127, 128, 129, 200, 1000]
HEADS = [(1, 8, 2), (2, 3, 3), (2, 4, 1)]  # B, HQ, HKV


def problem(B, HQ, HKV, SQ, SK, D=128, T="bf16", causal=0):
    return {"B": B, "HQ": HQ, "HKV": HKV, "SQ": SQ, "SK": SK, "D": D, "T": T, "CAUSAL": causal}


TIMED = [
    problem(4, 16, 16, 4096, 4096, 128, "bf16", 1),
    problem(4, 16, 16, 4096, 4096, 128, "bf16", 0),
    problem(2, 32, 32, 2048, 2048, 64, "bf16", 1),
    problem(2, 32, 32, 2048, 2048, 64, "bf16", 0),
]


def label(p):
    heads = f"{p['HQ']}:{p['HKV']}" if p["HQ"] != p["HKV"] else p["HQ"]
    kind = "causal" if p["CAUSAL"] else "full"
    return f"({p['B']}, {heads}, {p['SQ']}x{p['SK']}, {p['D']}) {p['T']} {kind}"


def flops(p):
    """As usual, half of them where causal."""
    return 4 * p["B"] * p["HQ"] * p["SQ"] * p["SK"] * p["D"] // (1 + p["CAUSAL"])


class Operands:
    def __init__(self, p, spec, seed):
        generator = torch.Generator("cuda").manual_seed(seed)
        self.problem = p
        self.dtype = TYPES[p["T"]]

        def normal(heads, length):
            shape = (p["B"], heads, length, p["D"])
            return torch.randn(shape, generator=generator, device="cuda").to(self.dtype)

        self.q, self.k, self.v = (
            normal(p["HQ"], p["SQ"]),
            normal(p["HKV"], p["SK"]),
            normal(p["HKV"], p["SK"]),
        )
        self.rows = p["B"] * p["HQ"] * p["SQ"]
        self.o = torch.empty(self.rows * p["D"] + GUARD, dtype=self.dtype, device="cuda")
        self.lse = torch.empty(self.rows + GUARD, dtype=torch.float32, device="cuda")
        self.tolerances = [spec.json["tolerance"][p["T"]], spec.json["tolerance"]["f32"]]

    def buffers(self):
        return {name: getattr(self, name) for name in ("q", "k", "v", "o", "lse")}

    def expected(self, dtype=torch.float64):
        """Outputs as they should be, and the logarithms: one batch at a time, for the memory's sake."""
        p = self.problem
        query = torch.arange(p["SQ"], device="cuda")[:, None]
        hidden = torch.arange(p["SK"], device="cuda")[None] > query + p["SK"] - p["SQ"]
        outputs, logarithms = [], []
        for b in range(p["B"]):
            k, v = (x[b].repeat_interleave(p["HQ"] // p["HKV"], 0).to(dtype) for x in (self.k, self.v))
            scores = (self.q[b].to(dtype) @ k.mT) * SCALE
            if p["CAUSAL"]:
                scores.masked_fill_(hidden, float("-inf"))
            logarithms.append(torch.logsumexp(scores, -1))
            outputs.append((torch.softmax(scores, -1) @ v).nan_to_num(0.0).to(self.dtype))
        return [torch.stack(outputs).flatten(), torch.stack(logarithms).flatten().float()]

    def fault(self, expected):
        """What is wrong with the outputs, or nothing."""
        outputs = {"O": self.o, "L": self.lse}
        for (name, out), wanted, tolerance in zip(outputs.items(), expected, self.tolerances):
            if not torch.isnan(out[wanted.numel() :]).all():
                return f"wrote beyond {name}"
            got, want = out[: wanted.numel()].float(), wanted.float()
            error = torch.where(got == want, 0.0, (got - want).abs())
            wrong = ~(error <= tolerance["atol"] + tolerance["rtol"] * want.abs())
            if wrong.any():
                first = int(wrong.nonzero()[0])
                row = first // self.problem["D"] if name == "O" else first
                where = f"head {row // self.problem['SQ']} query {row % self.problem['SQ']}"
                return f"{int(wrong.sum())} of {wanted.numel()} elements of {name} are off, the first in {where}, most by {error.max().item():.3g}"
        return ""


class Bench:
    def __init__(self, device):
        self.spec = KernelSpec(
            HERE.parents[1] / "variants/flash_attention/flash_attention_forward.json", device
        )
        self.compiler = Compiler(f"sm_{device['cc']}{'a' if device['cc'] >= 90 else ''}")
        self.faults = []

    def order(self, p, configuration):
        entries = [launch["entry"] for launch in self.spec.launches(p, configuration)]
        return self.compiler.start(self.spec, entries)

    def argument(self, name, p, configuration, buffers):
        if name in buffers:
            return buffers[name]
        scalar = self.spec.json["arguments"][name]
        if "expr" not in scalar:
            return SCALARS[scalar["scalar"]](SCALE)
        return SCALARS[scalar["scalar"]](Expression(scalar["expr"])(self.spec.values(p, configuration)))

    def call(self, p, configuration, operands):
        """A call of the configuration on the operands, or None where it does not compile."""
        cubin, symbols, error = self.order(p, configuration).result()
        if error:
            self.note(p, configuration, "does not compile: " + error.strip()[-300:])
            return None
        [launch] = self.spec.launches(p, configuration)
        kernel = Kernel(
            cubin, symbols[launch["entry"]], launch["grid"], launch["block"], launch["shared_bytes"]
        )
        buffers = operands.buffers()
        return kernel.bind([self.argument(name, p, configuration, buffers) for name in launch["arguments"]])

    def note(self, p, configuration, fault):
        self.faults.append({"problem": p, "configuration": configuration, "fault": fault})
        print(f"WRONG {label(p)} [{short(configuration)}]: {fault}", flush=True)

    def is_right(self, p, configuration, operands, expected):
        call = self.call(p, configuration, operands)
        if call is None:
            return False
        outputs = []
        for _ in range(2):
            operands.o.fill_(float("nan"))
            operands.lse.fill_(float("nan"))
            call()
            torch.cuda.synchronize()
            outputs.append((operands.o.clone(), operands.lse.clone()))
        fault = operands.fault(expected)
        if not fault and not all(
            torch.equal(one[: want.numel()], two[: want.numel()])
            for one, two, want in zip(*outputs, expected)
        ):
            fault = "other bits the second time"
        if fault:
            self.note(p, configuration, fault)
        return not fault

    def pool(self, D, T, causal, count):
        """The configurations that are tried at all lengths: the default, and some of each engine."""
        p = problem(4, 16, 16, 4096, 4096, D, T, causal)
        valid = self.spec.configurations(p)
        chosen = [self.spec.default(p)]
        for engine in sorted({c["ENGINE"] for c in valid}):
            of_engine = [c for c in valid if c["ENGINE"] == engine]
            chosen += random.Random(f"{D} {T} {causal}").sample(of_engine, min(count, len(of_engine)))
        return chosen

    def check(self, count):
        kinds = list(itertools.product((64, 128), ("bf16", "f16"), (0, 1)))
        pools = {kind: self.pool(*kind, count) for kind in kinds}
        for (D, T, causal), pool in pools.items():
            for configuration in pool:
                self.order(problem(1, 1, 1, 1, 1, D, T, causal), configuration)
        generator = random.Random(0)
        pairs = [(n, n) for n in LENGTHS] + [tuple(generator.choices(LENGTHS, k=2)) for _ in range(20)]
        summary = {}
        for i, ((D, T, causal), (SQ, SK)) in enumerate(itertools.product(kinds, pairs)):
            p = problem(*HEADS[i % len(HEADS)], SQ, SK, D, T, causal)
            operands = Operands(p, self.spec, i)
            expected = operands.expected()
            for configuration in pools[D, T, causal]:
                right = self.is_right(p, configuration, operands, expected)
                counts = summary.setdefault(f"engine {configuration['ENGINE']} {T}", [0, 0])
                counts[0 if right else 1] += 1
        for name, (right, wrong) in sorted(summary.items()):
            print(f"{name}: {right} right, {wrong} wrong", flush=True)
        return summary

    def order_timed(self, limit):
        """The configurations of each timed problem, whose compiles begin at once."""
        result = []
        for p in TIMED:
            valid = self.spec.configurations(p)
            if limit:
                valid = random.Random(0).sample(valid, min(limit, len(valid)))
            default = self.spec.default(p)
            result.append([default, *(c for c in valid if c != default)])
            for configuration in result[-1]:
                self.order(p, configuration)
        return result

    def others(self, p, operands):
        """Calls of torch's backends, those that take the problem."""
        result = {}
        for name, backend in BACKENDS.items():

            def call(backend=backend):
                with sdpa_kernel(backend):
                    return torch.nn.functional.scaled_dot_product_attention(
                        operands.q, operands.k, operands.v, is_causal=bool(p["CAUSAL"]), scale=SCALE
                    )

            try:
                call()
                torch.cuda.synchronize()
                result[name] = call
            except RuntimeError as error:
                print(f"    {name} does not take {label(p)}: {str(error).splitlines()[0]}", flush=True)
        return result

    def measure(self, p, configurations, timer, rounds):
        operands = Operands(p, self.spec, 1)
        named = {short(c): c for c in configurations}
        calls = {name: self.call(p, c, operands) for name, c in named.items()}
        calls = {name: call for name, call in calls.items() if call}
        others = self.others(p, operands)
        first = {name: median(times) for name, times in timer.samples({**calls, **others}, 3).items()}
        ranked = sorted(calls, key=first.get)
        best_of = {}
        for name in ranked:
            best_of.setdefault(named[name]["ENGINE"], name)
        kept = {*ranked[:12], *best_of.values(), short(configurations[0])} & set(calls)
        times = timer.samples({**{name: calls[name] for name in sorted(kept)}, **others}, rounds)
        times = {name: median(values) for name, values in times.items()}

        def row(name, us):
            return {"configuration": named.get(name, name), "us": us, "tflops": flops(p) / us / 1e6}

        expected = operands.expected(torch.float32)
        rows = [row(name, times[name]) for name in sorted(kept, key=times.get)]
        for line in rows:
            line["right"] = self.is_right(p, line["configuration"], operands, expected)
        result = {
            "problem": p,
            "others": {name: row(name, times[name]) for name in others},
            "best": rows,
            "best_of_engine": {engine: row(name, times[name]) for engine, name in sorted(best_of.items())},
            "all": [row(name, first[name]) for name in ranked],
        }
        report(result)
        return result


def report(result):
    print(f"{label(result['problem'])}: {len(result['all'])} configurations, TFLOP/s")
    for name, line in result["others"].items():
        print(f"    {line['tflops']:7.1f} ({line['us']:.1f} us) {name}")
    for line in result["best"][:5]:
        wrong = "" if line["right"] else " WRONG"
        print(f"    {line['tflops']:7.1f} ({line['us']:.1f} us) {short(line['configuration'])}{wrong}")
    for engine, line in result["best_of_engine"].items():
        print(f"    engine {engine}: {line['tflops']:.1f} {short(line['configuration'])}", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=pathlib.Path, help="where to write all figures")
    parser.add_argument("--pool", type=int, default=6, help="configurations of each engine that are checked")
    parser.add_argument("--rounds", type=int, default=15, help="samples of each of the fastest")
    parser.add_argument("--limit", type=int, default=0, help="configurations timed at most (0: all)")
    parser.add_argument("--quick", action="store_true", help="check only")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_grad_enabled(False)
    begun = time.monotonic()
    bench = Bench(device_constants())
    result = {"device": torch.cuda.get_device_name(0), "torch": torch.__version__}
    result["checked"] = bench.check(options.pool)
    print(f"checked after {time.monotonic() - begun:.0f} s", flush=True)
    result["timed"] = []

    def write():
        if options.json:
            result["faults"] = bench.faults
            options.json.write_text(json.dumps(result, indent=1) + "\n")

    write()
    if not options.quick:
        timed = bench.order_timed(options.limit)
        source = HERE.parent / "rmsnorm_vs_torch_triton/vector_copy.cu"
        timer = Timer(compile_source(source, [])[0])
        timer.warm_up()
        for p, configurations in zip(TIMED, timed):
            result["timed"].append(bench.measure(p, configurations, timer, options.rounds))
            write()
            print(f"    after {time.monotonic() - begun:.0f} s", flush=True)
    bench.compiler.close()
    return 1 if bench.faults else 0


if __name__ == "__main__":
    sys.exit(main())
