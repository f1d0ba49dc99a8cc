"""The matmul kernel checked against float64 and timed beside torch.matmul, without a daemon.

    python3 bench/kernels/matmul.py [--json FILE] [--samples 8] [--quick]

First every engine over edge shapes, both layouts of A and B, bias and activations, with the defaults and a
sample of the other valid configurations: each output element within the spec's tolerance, nothing written
beyond C, the same bits twice. Then all valid configurations of larger problems by time. Needs torch and NVRTC.
Exit status 1: a result is wrong.
"""

import argparse
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
from spec import KernelSpec  # noqa: E402
from timing import Timer, median  # noqa: E402

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
GUARD = 4096  # elements beyond C that must stay as they are


def problem(M, N, K, T="bf16", transposed="nn", bias=0, activation=0):
    flags = {"TRANSPOSE_A": int(transposed[0] == "t"), "TRANSPOSE_B": int(transposed[1] == "t")}
    return {"M": M, "N": N, "K": K, "T": T, **flags, "BIAS": bias, "ACTIVATION": activation}


LAYOUTS = ["nn", "nt", "tn", "tt"]
CHECKED = [
    *(problem(512, 768, 512, T, layout, 1, 1) for T in TYPES for layout in LAYOUTS),
    *(problem(200, 136, 200, T, layout, 1, 2) for T in TYPES for layout in LAYOUTS),
    *(problem(129, 257, 131, T, layout, 1, 0) for T in TYPES for layout in LAYOUTS),
    *(problem(1, 1, 1, T, layout) for T in TYPES for layout in LAYOUTS),
    *(problem(M, 4096, 4096, "bf16", "nt") for M in (1, 3, 16, 33, 64)),
    *(problem(M, 1024, 1028, "bf16", layout) for M in (66, 100) for layout in LAYOUTS),
    *(problem(256, 256, 16384, T, layout) for T in TYPES for layout in LAYOUTS),
    *(problem(1000, 2056, 1032, T, layout, 1, 0) for T in ("bf16", "f16") for layout in LAYOUTS),
    *(problem(4096, 4096, 4096, "bf16", layout) for layout in LAYOUTS),
]
TIMED = [
    *(problem(4096, 4096, 4096, "bf16", layout) for layout in LAYOUTS),
    problem(8192, 8192, 8192, "bf16", "nt"),
    problem(8192, 8192, 8192, "bf16", "nn"),
    problem(4096, 14336, 4096, "bf16", "nt"),
    problem(1024, 4096, 4096, "bf16", "nt"),
    problem(64, 4096, 4096, "bf16", "nt"),
    problem(1, 4096, 4096, "bf16", "nt"),
    problem(4096, 4096, 4096, "f32", "nn"),
]


def label(p):
    layout = "nt"[p["TRANSPOSE_A"]] + "nt"[p["TRANSPOSE_B"]]
    return f"{p['M']}x{p['N']}x{p['K']} {p['T']} {layout} bias {p['BIAS']} activation {p['ACTIVATION']}"


def short(configuration):
    return ",".join(str(value) for value in configuration.values())


class Operands:
    def __init__(self, p, spec, seed):
        generator = torch.Generator("cuda").manual_seed(seed)
        dtype = TYPES[p["T"]]

        def normal(*shape, stddev=1.0):
            return (torch.randn(*shape, generator=generator, device="cuda") * stddev).to(dtype)

        M, N, K = p["M"], p["N"], p["K"]
        self.a = normal(K, M) if p["TRANSPOSE_A"] else normal(M, K)
        self.b = normal(N, K, stddev=1 / 64) if p["TRANSPOSE_B"] else normal(K, N, stddev=1 / 64)
        self.bias = normal(N)
        self.c = torch.empty(M * N + GUARD, dtype=dtype, device="cuda")
        self.problem = p
        self.tolerance = spec.json["tolerance"][p["T"]]

    def left(self):
        return self.a.T if self.problem["TRANSPOSE_A"] else self.a

    def right(self):
        return self.b.T if self.problem["TRANSPOSE_B"] else self.b

    def expected(self):
        result = self.left().double() @ self.right().double()
        if self.problem["BIAS"]:
            result += self.bias.double()
        if self.problem["ACTIVATION"] == 1:
            result = torch.nn.functional.gelu(result)
        elif self.problem["ACTIVATION"] == 2:
            result = torch.nn.functional.silu(result)
        return result.to(TYPES[self.problem["T"]]).double()

    def fault(self, expected):
        """What is wrong with c, or nothing."""
        count = self.problem["M"] * self.problem["N"]
        if not torch.isnan(self.c[count:]).all():
            return "wrote beyond C"
        error = (self.c[:count].view(expected.shape).double() - expected).abs()
        excess = error - self.tolerance["atol"] - self.tolerance["rtol"] * expected.abs()
        wrong = ~(excess <= 0)
        if wrong.any():
            first = wrong.nonzero()[0].tolist()
            return f"{int(wrong.sum())} of {count} elements are off, the first at {first}, most by {error.max().item():.3g}"
        return ""


class Bench:
    def __init__(self, device):
        self.spec = KernelSpec(HERE.parents[1] / "variants/matmul/matmul.json", device)
        suffix = "a" if device["cc"] >= 90 and self.spec.json.get("arch_features") else ""
        self.compiler = Compiler(f"sm_{device['cc']}{suffix}")
        self.faults = []

    def order(self, p, configuration):
        entries = [launch["entry"] for launch in self.spec.launches(p, configuration)]
        return self.compiler.start(self.spec, entries)

    def call(self, p, configuration, operands):
        """A call of the configuration on the operands, or None where it does not compile."""
        cubin, symbols, error = self.order(p, configuration).result()
        if error:
            self.note(p, configuration, "does not compile: " + error.strip()[-300:])
            return None
        extents = self.spec.extents(p, configuration)
        partial = torch.empty(max(extents["partial"], 1), dtype=torch.float32, device="cuda")
        buffers = {
            "a": operands.a,
            "b": operands.b,
            "bias": operands.bias,
            "c": operands.c,
            "partial": partial,
        }
        calls = []
        for launch in self.spec.launches(p, configuration):
            kernel = Kernel(
                cubin, symbols[launch["entry"]], launch["grid"], launch["block"], launch["shared_bytes"]
            )
            arguments = [
                buffers[name] if name in buffers else SCALARS["i32"](p[name]) for name in launch["arguments"]
            ]
            calls.append(kernel.bind(arguments))

        def call():
            for one in calls:
                one()

        return call

    def note(self, p, configuration, fault):
        self.faults.append({"problem": p, "configuration": configuration, "fault": fault})
        print(f"WRONG {label(p)} [{short(configuration)}]: {fault}", flush=True)

    def is_right(self, p, configuration, operands, expected):
        call = self.call(p, configuration, operands)
        if call is None:
            return False
        outputs = []
        for _ in range(2):
            operands.c.fill_(float("nan"))
            call()
            torch.cuda.synchronize()
            outputs.append(operands.c.clone())
        fault = operands.fault(expected)
        count = p["M"] * p["N"]
        if not fault and not torch.equal(outputs[0][:count], outputs[1][:count]):
            fault = "other bits the second time"
        if fault:
            self.note(p, configuration, fault)
        return not fault

    def sample(self, p, count, seed):
        """The default, and others so that each engine, tile and split has its turn over the problems."""
        valid = self.spec.configurations(p)
        default = self.spec.default(p)
        rest = random.Random(seed).sample(valid, min(count, len(valid)))
        wgmma = [c for c in valid if c["ENGINE"] == 1]
        rest += random.Random(seed + 1).sample(wgmma, min(count, len(wgmma)))
        return [default, *(c for c in rest if c != default)]

    def check(self, problems, count):
        chosen = [(p, self.sample(p, count, i)) for i, p in enumerate(problems)]
        for p, configurations in chosen:
            for configuration in configurations:
                self.order(p, configuration)
        summary = {}
        for i, (p, configurations) in enumerate(chosen):
            operands = Operands(p, self.spec, i)
            expected = operands.expected()
            for configuration in configurations:
                right = self.is_right(p, configuration, operands, expected)
                counts = summary.setdefault(f"engine {configuration['ENGINE']} {p['T']}", [0, 0])
                counts[0 if right else 1] += 1
        for name, (right, wrong) in sorted(summary.items()):
            print(f"{name}: {right} right, {wrong} wrong", flush=True)
        return summary

    def measure(self, p, timer, rounds, limit):
        configurations = self.spec.configurations(p)
        if limit:
            configurations = random.Random(0).sample(configurations, min(limit, len(configurations)))
        default = self.spec.default(p)
        configurations = [default, *(c for c in configurations if c != default)]
        for configuration in configurations:
            self.order(p, configuration)
        operands = Operands(p, self.spec, 1)
        calls = {short(c): self.call(p, c, operands) for c in configurations}
        named = {short(c): c for c in configurations}
        out = torch.empty(p["M"], p["N"], dtype=TYPES[p["T"]], device="cuda")
        left, right = operands.left(), operands.right()
        calls = {name: call for name, call in calls.items() if call}
        calls["torch"] = lambda: torch.matmul(left, right, out=out)
        first = {name: median(times) for name, times in timer.samples(calls, 3).items()}
        best = sorted((name for name in first if name != "torch"), key=first.get)[:12]
        kept = {name: calls[name] for name in {*best, "torch", short(default)} if name in calls}
        times = {name: median(values) for name, values in timer.samples(kept, rounds).items()}
        flops = 2 * p["M"] * p["N"] * p["K"]

        def row(name):
            return {"configuration": named.get(name), "us": times[name], "tflops": flops / times[name] / 1e6}

        expected = operands.expected()
        ranked = sorted((name for name in times if name != "torch"), key=times.get)
        rows = [{**row(name), "right": self.is_right(p, named[name], operands, expected)} for name in ranked]
        best_of = {}
        for name in sorted((n for n in first if n != "torch"), key=first.get):
            best_of.setdefault(
                named[name]["ENGINE"],
                {"configuration": named[name], "us": first[name], "tflops": flops / first[name] / 1e6},
            )
        result = {
            "problem": p,
            "valid": len(configurations),
            "torch": row("torch"),
            "best": rows,
            "best_of_engine": best_of,
        }
        print(
            f"{label(p)}: torch {result['torch']['tflops']:.1f} TFLOP/s ({times['torch']:.1f} us), {len(configurations)} configurations"
        )
        for line in rows[:5]:
            print(
                f"    {line['tflops']:7.1f} ({line['us']:.1f} us) {short(line['configuration'])}{'' if line['right'] else ' WRONG'}"
            )
        for engine, line in sorted(best_of.items()):
            print(f"    engine {engine}: {line['tflops']:.1f} {short(line['configuration'])}", flush=True)
        return result


def device_constants():
    properties = torch.cuda.get_device_properties(0)
    return {
        "sm_count": properties.multi_processor_count,
        "shared_optin": properties.shared_memory_per_block_optin,
        "l2_bytes": properties.L2_cache_size,
        "cc": properties.major * 10 + properties.minor,
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=pathlib.Path, help="where to write all figures")
    parser.add_argument("--samples", type=int, default=8, help="configurations of a checked problem")
    parser.add_argument("--rounds", type=int, default=15, help="samples of each of the fastest")
    parser.add_argument("--limit", type=int, default=0, help="configurations timed at most (0: all)")
    parser.add_argument("--quick", action="store_true", help="check only")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    begun = time.monotonic()
    bench = Bench(device_constants())
    result = {"device": torch.cuda.get_device_name(0), "torch": torch.__version__}
    result["checked"] = bench.check(CHECKED, options.samples)
    print(f"checked after {time.monotonic() - begun:.0f} s", flush=True)
    result["timed"] = []

    def write():
        if options.json:
            result["faults"] = bench.faults
            options.json.write_text(json.dumps(result, indent=1) + "\n")

    write()
    if not options.quick:
        source = HERE.parent / "rmsnorm_vs_torch_triton/vector_copy.cu"
        timer = Timer(compile_source(source, [])[0])
        timer.warm_up()
        for p in TIMED:
            result["timed"].append(bench.measure(p, timer, options.rounds, options.limit))
            write()
            print(f"    after {time.monotonic() - begun:.0f} s", flush=True)
    bench.compiler.close()
    return 1 if bench.faults else 0


if __name__ == "__main__":
    sys.exit(main())
