"""The attention kernel checked against float64 and timed next to torch's attention, without a daemon.

    python3 bench/kernels/attention.py [--json FILE] [--pool 6] [--quick] [--passes forward]

First each engine over edge lengths, grouped heads, all head sizes and types, causal or not: each output
element within the spec's tolerance, nothing written beyond the outputs, the same bits twice. The
configurations of a pool take turns. Then all valid configurations of larger problems by time, next to torch's
flash and cuDNN backends. Needs torch and NVRTC. Exit status 1: a result is wrong; 3: a kernel did not end
within 30 s, and the last line names it.
"""

import functools
import itertools
import json
import pathlib
import random
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
import torch
from checking import Checker, short
from operations import TYPE_NAMES, TYPES
from products import Draw, guarded
from timing import Timer, median
from torch.nn.attention import SDPBackend, sdpa_kernel

SCALE = 0.1
BACKENDS = {"torch flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
LENGTHS = [1, 17, 63, 64, 65, 127, 128, 129, 200, 1000]
HEADS = [(1, 8, 2), (2, 3, 3), (2, 4, 1)]  # B, HQ, HKV
# Of these a persistent block has several tiles of queries: the heads, SQ and SK.
CROWDED = [((11, 12, 4), 300, 300), ((24, 11, 11), 640, 129), ((40, 8, 8), 65, 1000)]
FLAGS = [  # with which windows and caps the causal mask is checked, or none
    {"CAUSAL": 1, "LEFT": 7},
    {"CAUSAL": 1, "LEFT": 100, "SOFT_CAP": 50},
    {"LEFT": 33, "RIGHT": 17},
    {"RIGHT": 5},
    {"LEFT": 70},
    {"CAUSAL": 1, "SOFT_CAP": 3},
    {"SOFT_CAP": 50},
    {"LEFT": 1, "RIGHT": 1},
]


# Head size, type and flags of the checked problems.
KINDS = [
    (D, T, (("CAUSAL", causal),))
    for D, T, causal in itertools.product((64, 80, 96, 128, 256), ("bf16", "f16"), (0, 1))
]
FLAGGED_KINDS = [
    (D, ("bf16", "f16")[i % 2], tuple(flags.items()))
    for i, (flags, D) in enumerate(itertools.product(FLAGS, (64, 128, 256)))
]


def problem(B, HQ, HKV, SQ, SK, D=128, T="bf16", causal=0):
    return {"B": B, "HQ": HQ, "HKV": HKV, "SQ": SQ, "SK": SK, "D": D, "T": T, "CAUSAL": causal}


def seen(query, key, diagonal, p):
    """Whether queries see keys: by their numbers, tensors of shapes that broadcast."""
    distance = key - query - diagonal
    result = torch.ones_like(distance, dtype=torch.bool)
    if p.get("CAUSAL"):
        result &= distance <= 0
    if p.get("LEFT"):
        result &= distance > -p["LEFT"]
    if p.get("RIGHT"):
        result &= distance < p["RIGHT"]
    return result


def capped(products, p):
    """Scores of scaled products, and their derivatives."""
    cap = p.get("SOFT_CAP", 0)
    if not cap:
        return products, torch.ones_like(products)
    tangent = torch.tanh(products / cap)
    return cap * tangent, 1 - tangent.square()


TIMED = [
    problem(4, 16, 16, 4096, 4096, 128, "bf16", 1),
    problem(4, 16, 16, 4096, 4096, 128, "bf16", 0),
    problem(2, 32, 32, 2048, 2048, 64, "bf16", 1),
    problem(2, 32, 32, 2048, 2048, 64, "bf16", 0),
    problem(2, 8, 4, 4096, 4096, 256, "bf16", 1),
]


def label(p):
    heads = f"{p['HQ']}:{p['HKV']}" if p["HQ"] != p["HKV"] else p["HQ"]
    kind = "causal" if p["CAUSAL"] else "full"
    more = "".join(f" {name.lower()} {p[name]}" for name in ("LEFT", "RIGHT", "SOFT_CAP") if p.get(name))
    return f"({p['B']}, {heads}, {p['SQ']}x{p['SK']}, {p['D']}) {p['T']} {kind}{more}"


def engine_of(configuration):
    return configuration["ENGINE"]


def zip_heads(p, kv):
    """Keys or values of a batch, once for each head of queries."""
    return kv.repeat_interleave(p["HQ"] // p["HKV"], 0)


def weights_of(scores):
    """A query that sees no key has none."""
    return torch.softmax(scores, -1).masked_fill(scores.isneginf().all(-1, keepdim=True), 0.0)


class Forward:
    """The forward pass's operands, and what its outputs should be."""

    name = "flash_attention_forward"
    products = 2

    def __init__(self, p, seed, special=False):
        self.problem = p
        self.dtype = TYPES[p["T"]]
        normal = Draw(seed, self.dtype)
        query, key = (p["B"], p["HQ"], p["SQ"], p["D"]), (p["B"], p["HKV"], p["SK"], p["D"])
        self.inputs = {"q": normal(*query), "k": normal(*key), "v": normal(*key)}
        if special:  # what this query sees is not finite
            self.inputs["q"][0, 0, 0, 0] = float("nan")
        self.inputs.update(self.more_inputs(normal))
        self.outputs = self.make_outputs()
        self.buffers = {**self.inputs, **self.outputs}
        self.scalars = {"scale": SCALE, "q_row": 0, "k_row": 0, "v_row": 0}

    def more_inputs(self, normal):
        return {}

    def make_outputs(self):
        count = self.inputs["q"].numel()
        rows = count // self.problem["D"]
        return {"o": guarded(count, self.dtype), "lse": guarded(rows, torch.float32)}

    def batch(self, b, dtype):
        """Q, K and V of a batch, its scores, of which those that are not seen are -infinity, and the scores'
        derivatives."""
        p = self.problem
        q, k, v = (self.inputs[name][b].to(dtype) for name in ("q", "k", "v"))
        k, v = zip_heads(p, k), zip_heads(p, v)
        scores, derivatives = capped((q @ k.mT) * SCALE, p)
        query = torch.arange(p["SQ"], device="cuda")[:, None]
        here = seen(query, torch.arange(p["SK"], device="cuda")[None], p["SK"] - p["SQ"], p)
        return q, k, v, scores.masked_fill_(~here, float("-inf")), derivatives

    def truth(self, dtype=torch.float64):
        """The outputs by name, one batch at a time for the memory's sake."""
        outputs, logarithms = [], []
        for b in range(self.problem["B"]):
            _, _, v, scores, _ = self.batch(b, dtype)
            logarithms.append(torch.logsumexp(scores, -1))
            outputs.append((weights_of(scores) @ v).to(self.dtype))
        return {"o": torch.stack(outputs).flatten(), "lse": torch.stack(logarithms).flatten().float()}

    def torch_call(self, backend):
        q, k, v = (self.inputs[name] for name in ("q", "k", "v"))

        def call():
            with sdpa_kernel(backend):
                return (
                    torch.nn.functional.scaled_dot_product_attention(
                        q, k, v, is_causal=bool(self.problem["CAUSAL"]), scale=SCALE
                    ),
                )

        return call

    def flops(self):
        """As usual, half of them where causal."""
        p = self.problem
        return self.products * 2 * p["B"] * p["HQ"] * p["SQ"] * p["SK"] * p["D"] // (1 + p["CAUSAL"])


class Backward(Forward):
    """The same of the backward pass, whose O and L are those of a forward pass."""

    name = "flash_attention_backward"
    products = 5

    def more_inputs(self, normal):
        return {"d_o": normal(*self.inputs["q"].shape), **super().truth(torch.float32)}

    def make_outputs(self):
        return {f"d{name}": guarded(self.inputs[name].numel(), self.dtype) for name in ("q", "k", "v")}

    def truth(self, dtype=torch.float64):
        p = self.problem
        gradients = {name: [] for name in self.outputs}

        def shared(per_head):
            """Summed over the heads of queries that share one of keys."""
            return per_head.view(p["HKV"], -1, p["SK"], p["D"]).sum(1)

        for b in range(p["B"]):
            q, k, v, scores, derivatives = self.batch(b, dtype)
            d_o = self.inputs["d_o"][b].to(dtype)
            weights = weights_of(scores)
            o = self.inputs["o"].view(p["B"], p["HQ"], p["SQ"], p["D"])[b].to(dtype)
            slopes = weights * (d_o @ v.mT - (o * d_o).sum(-1, keepdim=True)) * derivatives
            gradients["dq"].append(slopes @ k * SCALE)
            gradients["dk"].append(shared(slopes.mT @ q) * SCALE)
            gradients["dv"].append(shared(weights.mT @ d_o))
        return {name: torch.stack(parts).flatten().to(self.dtype) for name, parts in gradients.items()}

    def torch_call(self, backend):
        inputs = [self.inputs[name].detach().clone().requires_grad_() for name in ("q", "k", "v")]
        with torch.enable_grad(), sdpa_kernel(backend):
            out = torch.nn.functional.scaled_dot_product_attention(
                *inputs, is_causal=bool(self.problem["CAUSAL"]), scale=SCALE
            )
        return lambda: torch.autograd.grad(out, inputs, self.inputs["d_o"], retain_graph=True)


PASSES = {"forward": Forward, "backward": Backward}


class Bench(Checker):
    def __init__(self, direction):
        super().__init__(direction.name)
        self.direction = direction

    def label(self, p):
        return label(p)

    def fault(self, _p, operands, truth):
        """What is wrong with the outputs, or nothing. An element that is not written stays NaN, which is
        wrong."""
        for name, wanted in truth.items():
            out = operands.outputs[name]
            if not torch.isnan(out[wanted.numel() :]).all():
                return f"wrote beyond {name}"
            rtol, atol = self.spec.tolerance(TYPE_NAMES[out.dtype], name, operands.problem)
            got, want = out[: wanted.numel()].float(), wanted.float()
            same = (got == want) | ~(got.isfinite() | want.isfinite())
            error = torch.where(same, 0.0, (got - want).abs())
            wrong = ~same & ~(error <= atol + rtol * want.abs())
            if wrong.any():
                first = int(wrong.nonzero()[0])
                return f"{int(wrong.sum())} of {wanted.numel()} elements of {name} are off, the first at {first}, most by {error.max().item():.3g}"
        return ""

    def pool(self, large, small, count):
        """The configurations that are tried, those valid for either problem: lists of `count` at
        most, first the default's, then one of each engine."""
        valid = self.configurations(large)
        valid += [c for c in self.configurations(small) if c not in valid]
        lists = [[self.default(large)]]
        for engine in sorted({engine_of(c) for c in valid}):
            of_engine = [c for c in valid if engine_of(c) == engine]
            chosen = random.Random(json.dumps(large)).sample(of_engine, min(count, len(of_engine)))
            lists.append(chosen)
        return lists

    def pool_of(self, D, T, flags, count):
        p = {**problem(4, 16, 16, 4096, 4096, D, T), **dict(flags)}
        return self.pool(p, {**p, "SQ": 256, "SK": 256}, count)

    def check(self, count):
        pools = {kind: self.pool_of(*kind, count) for kind in KINDS}
        pools |= {kind: self.pool_of(*kind, 1) for kind in FLAGGED_KINDS}
        for (D, T, flags), pool in pools.items():
            for configuration in itertools.chain(*pool):
                self.order({**problem(1, 1, 1, 1, 1, D, T), **dict(flags)}, configuration)
        generator = random.Random(0)
        pairs = [(n, n) for n in LENGTHS] + [tuple(generator.choices(LENGTHS, k=2)) for _ in range(20)]
        shapes = [(HEADS[i % len(HEADS)], *pair) for i, pair in enumerate(pairs)] + CROWDED
        return self.count_right(self.cases(pools, shapes))

    def cases(self, pools, shapes):
        for i, (kind, (heads, SQ, SK)) in enumerate(itertools.product(pools, shapes)):
            D, T, flags = kind
            p = {**problem(*heads, SQ, SK, D, T), **dict(flags)}
            if i % len(shapes) == 0:
                print(f"{self.direction.name}: from {label(p)} on", flush=True)
            # Of gradients torch does not say which keys such a query reaches.
            operands = self.direction(p, i, special=self.direction is Forward and i % 7 == 3)
            truth = operands.truth()
            for configuration in (one[i // len(HEADS) % len(one)] for one in pools[kind]):
                name = f"{self.direction.name} engine {engine_of(configuration)} {T}"
                yield name, p, configuration, operands, truth

    def competitors(self, operands):
        """{name: what makes a call} of torch's backends."""
        return {name: functools.partial(operands.torch_call, backend) for name, backend in BACKENDS.items()}

    def others(self, p, operands):
        """Calls of torch that compute the same, those that take the problem."""
        result = {}
        for name, make in self.competitors(operands).items():
            try:
                call = make()
                call()
                torch.cuda.synchronize()
                result[name] = call
            except (RuntimeError, TypeError, ImportError, ValueError) as error:
                print(f"    {name} does not take {self.label(p)}: {str(error).splitlines()[0]}", flush=True)
        return result

    def measure(self, p, configurations, timer, rounds):
        operands = self.direction(p, 1)
        named = {short(c): c for c in configurations}
        calls = {name: self.call(p, c, operands) for name, c in named.items()}
        calls = {name: call for name, call in calls.items() if call}
        others = self.others(p, operands)
        first = {name: median(times) for name, times in timer.samples({**calls, **others}, 3).items()}
        ranked = sorted(calls, key=first.get)
        best_of = {}
        for name in ranked:
            best_of.setdefault(engine_of(named[name]), name)
        kept = {*ranked[:12], *best_of.values(), short(configurations[0])} & set(calls)
        times = timer.samples({**{name: calls[name] for name in sorted(kept)}, **others}, rounds)
        times = {name: median(values) for name, values in times.items()}

        def row(name, us):
            return {"configuration": named.get(name, name), "us": us, "tflops": operands.flops() / us / 1e6}

        truth = operands.truth(torch.float32)
        rows = [row(name, times[name]) for name in sorted(kept, key=times.get)]
        for line in rows:
            line["right"] = self.is_right(p, line["configuration"], operands, truth)
        result = {
            "pass": operands.name,
            "problem": p,
            "others": {name: row(name, times[name]) for name in others},
            "best": rows,
            "best_of_engine": {engine: row(name, times[name]) for engine, name in sorted(best_of.items())},
            "all": [row(name, first[name]) for name in ranked],
        }
        report(result)
        return result


def report(result):
    print(f"{result['pass']} {label(result['problem'])}: {len(result['all'])} configurations, TFLOP/s")
    for name, line in result["others"].items():
        print(f"    {line['tflops']:7.1f} ({line['us']:.1f} us) {name}")
    for line in result["best"][:5]:
        wrong = "" if line["right"] else " WRONG"
        print(f"    {line['tflops']:7.1f} ({line['us']:.1f} us) {short(line['configuration'])}{wrong}")
    for engine, line in result["best_of_engine"].items():
        print(f"    engine {engine}: {line['tflops']:.1f} {short(line['configuration'])}", flush=True)


def main():
    parser = command_line.make_parser(__doc__)
    parser.add_argument("--json", type=pathlib.Path, help="where to write all figures")
    parser.add_argument("--pool", type=int, default=6, help="configurations of each engine that are checked")
    parser.add_argument("--rounds", type=int, default=15, help="samples of each of the fastest")
    parser.add_argument("--limit", type=int, default=0, help="configurations timed at most (0: all)")
    parser.add_argument("--quick", action="store_true", help="check only")
    parser.add_argument("--passes", nargs="+", choices=PASSES, default=[*PASSES])
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_grad_enabled(False)
    begun = time.monotonic()
    result = {"device": torch.cuda.get_device_name(0), "torch": torch.__version__, "checked": {}, "timed": []}
    benches = [Bench(PASSES[name]) for name in options.passes]
    timer = Timer()
    timer.warm_up()

    def write():
        result["faults"] = [fault for bench in benches for fault in bench.faults]
        command_line.write(result, options.json)

    for bench in benches:
        result["checked"] |= bench.check(options.pool)
        print(f"checked after {time.monotonic() - begun:.0f} s", flush=True)
        timed = [] if options.quick else [bench.order_valid(p, options.limit) for p in TIMED]
        for p, configurations in zip(TIMED, timed):
            result["timed"].append(bench.measure(p, configurations, timer, options.rounds))
            write()
            print(f"    after {time.monotonic() - begun:.0f} s", flush=True)
        bench.compiler.close()
    write()
    return 1 if result["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
