"""Host time of the operators of cubind.torch and of torch's own. The problems are those of the table that
comes with cubind, for an H200, with the shortest kernels."""

import math
import statistics
import time

import cubind.torch as operators
import torch
from torch.nn import functional

EPS = 1e-6


def host_time(call, calls=500, rounds=41):
    """Microseconds a call: the median over rounds of the mean of one. The queue of the GPU holds more than a
    round's launches."""
    return in_turn({"it": call}, calls, rounds)["it"]


def in_turn(functions, calls=500, rounds=41):
    """The same of several by their names, whose rounds take turns: what slows the machine down for a while
    slows them all."""
    times = {name: [] for name in functions}
    for function in functions.values():
        _round(function, calls)
    for _ in range(rounds):
        for name, function in functions.items():
            times[name].append(_round(function, calls))
    torch.cuda.synchronize()
    return {name: statistics.median(values) for name, values in times.items()}


def _round(function, calls):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return 1e6 * (time.perf_counter() - start) / calls


def _made(*shape, scale=1.0):
    return (torch.randn(*shape, device="cuda") * scale).to(torch.bfloat16)


def _cases():
    """(name, function of cubind and of torch, inputs, further arguments, calls a round, rounds)."""
    x, w = _made(128, 1024), _made(1024)
    row, scale, shift = _made(1, 4096), _made(4096), _made(4096)
    q, k = _made(2, 32, 2048, 64), _made(2, 32, 2048, 64)
    yield (
        "rms_norm",
        lambda x, w: operators.rms_norm(x, (1024,), w, EPS),
        lambda x, w: functional.rms_norm(x, (1024,), w, EPS),
        (x, w),
        500,
        41,
    )
    yield (
        "layer_norm",
        lambda x, w, b: operators.layer_norm(x, (4096,), w, b, EPS),
        lambda x, w, b: functional.layer_norm(x, (4096,), w, b, EPS),
        (row, scale, shift),
        500,
        41,
    )
    yield (
        "softmax",
        operators.softmax,
        lambda x: functional.softmax(x, -1),
        (_made(1, 32000),),
        500,
        41,
    )
    yield (
        "linear",
        operators.linear,
        functional.linear,
        (_made(16, 4096), _made(4096, 4096, scale=1 / 64)),
        500,
        21,
    )
    yield (
        "attention",
        lambda q, k, v: operators.scaled_dot_product_attention(q, k, v, is_causal=True),
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        (q, k, k.clone()),
        100,
        7,
    )


def _differ(ours, theirs):
    """How far the results are apart, in the root mean square of torch's."""
    ours, theirs = ours.double(), theirs.double()
    return ((ours - theirs).square().mean().sqrt() / theirs.square().mean().sqrt()).item()


def _case_times(ours, theirs, inputs, calls, rounds):
    with torch.no_grad():
        differs = _differ(ours(*inputs), theirs(*inputs))
        pair = {"cubind": lambda: ours(*inputs), "torch": lambda: theirs(*inputs)}
        times = in_turn(pair, calls, rounds)
    given = [tensor.clone().requires_grad_() for tensor in inputs]
    pair = {"cubind_autograd": lambda: ours(*given), "torch_autograd": lambda: theirs(*given)}
    return {"differs": differs, **times, **in_turn(pair, calls, rounds)}


def operator_times(say):
    """By operator: microseconds of a forward call without gradients and with them, and how far its results
    are from torch's. Of rms_norm also through torch's dispatcher, which is the way from a compiled graph."""
    operators.strict()  # torch's formula is not what is measured
    results = {}
    for name, ours, theirs, inputs, calls, rounds in _cases():
        say(name)
        results[name] = _case_times(ours, theirs, inputs, calls, rounds)
        say(f"{name}: " + ", ".join(f"{key} {value:.3g}" for key, value in results[name].items()))
    x, w = _made(128, 1024), _made(1024)
    with torch.no_grad():
        results["rms_norm"]["cubind_by_the_dispatcher"] = host_time(
            lambda: torch.ops.cubind.rms_norm(x, w, EPS)
        )
        results["torch_empty_like"] = host_time(lambda: torch.empty_like(x))
    return results


def are_right(results):
    """Whether every operator's results are near torch's: both round to bf16."""
    worst = [value["differs"] for value in results.values() if isinstance(value, dict)]
    return all(not math.isnan(value) and value < 1e-2 for value in worst)
