"""Times of calls that take turns."""

import random
import statistics
import time

import torch

WARM_UP = 3


def in_turn(calls, rounds, device):
    """{name: [milliseconds, ...]}, one sample a round, in a new random order each round: a drift of clocks or
    temperature falls on all."""
    for call in calls.values():
        for _ in range(WARM_UP):
            call()
    sample = _gpu_sample if device == "cuda" else _cpu_sample
    order, names, times = random.Random(0), list(calls), {name: [] for name in calls}
    for _ in range(rounds):
        order.shuffle(names)
        samples = {name: sample(calls[name]) for name in names}
        if device == "cuda":
            torch.cuda.synchronize()
        for name, elapsed in samples.items():
            times[name].append(elapsed())
    return times


# Nothing waits for the GPU within a round, so that the host works ahead of it as it does in training.
def _gpu_sample(call):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    call()
    end.record()
    return lambda: start.elapsed_time(end)


def _cpu_sample(call):
    start = time.perf_counter()
    call()
    elapsed = 1e3 * (time.perf_counter() - start)
    return lambda: elapsed


def summary(values):
    """Milliseconds."""
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}
