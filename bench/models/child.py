"""`tune MODEL,... SIDE...` or `measure MODEL STEPS SIDE...`; the last line that it prints is JSON. A process
that measures prints "ready" once all sides are compiled, and goes on when it reads a line."""

import fcntl
import gc
import json
import math
import os
import pathlib
import re
import statistics
import sys
import time

import cubind.torch
import torch
from subjects import FLOAT32, SUBJECTS, Float32Side, Side, made
from torch._dynamo.callback import callback_handler
from torch.profiler import ProfilerActivity, profile

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
from machine import toolchain

WARM_UP = 10
PROFILED = 3  # steps
KERNELS = "activation|cross_entropy|flash_attention|grouped_mm|layernorm|matmul|normalize_rows|rmsnorm|rotary|softmax|weighted_sum"
OWN = re.compile(rf"^(void |_Z\d+)?({KERNELS})")  # as a profiler names them


class Turn:
    """The GPU is one process's at a time. While torch.compile compiles, others have it."""

    def __init__(self):
        self._file = os.open(os.environ["CUBIND_BENCH_TURN"], os.O_CREAT | os.O_RDWR, 0o600)
        callback_handler.register_start_callback(lambda _: self.give())
        callback_handler.register_end_callback(lambda _: self.take())
        self.take()

    def take(self):
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def give(self):
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        fcntl.flock(self._file, fcntl.LOCK_UN)


def tune(name, wanted):
    """What a user calls before the first step, for each eager side of cubind, whose kernels the compiled ones
    need too: seconds, and the problems."""
    subject, found = SUBJECTS[name], {}
    batch = subject.batch()
    eager = [side.removesuffix("_compiled").removesuffix("_detached") for side in wanted]
    for side in dict.fromkeys(side for side in eager if side.startswith("cubind")):
        model = made(subject, side)
        start = time.perf_counter()
        results = cubind.torch.tune(model, progress=False, **batch)
        seconds = time.perf_counter() - start
        failed = [f"{result.kernel} {result.problem}: {result.error}" for result in results if result.error]
        found[side] = {"tune_s": seconds, "problems": len(results), "failed": failed}
        del model
        gc.collect()
        torch.cuda.empty_cache()
    return found


def interval(samples):
    """Of the median with 95 %, by the binomial distribution: nothing is assumed of how the samples lie."""
    ordered, n = sorted(samples), len(samples)
    low = max(0, math.floor(n / 2 - 1.96 * math.sqrt(n) / 2))
    return ordered[low], ordered[n - 1 - low]


class Measured:
    """A side and its samples."""

    def __init__(self, subject, name):
        self.running = (Float32Side if name == FLOAT32 else Side)(made(subject, name))
        self.times, self.losses, self.peaks, self.profile = [], [], [], {"share": 0.0}
        torch.manual_seed(1)  # the same batch for all sides
        batch = subject.batch()
        for _ in range(WARM_UP):
            self.running.step(batch)
            cubind.torch.wait()

    def step(self, batch):
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.synchronize()
        start = time.perf_counter()
        loss = self.running.step(batch)
        torch.cuda.synchronize()
        self.times.append((time.perf_counter() - start) * 1e3)
        self.peaks.append((torch.cuda.max_memory_allocated() - before) / 2**30)
        self.losses.append(loss.item())
        self.loss_dtype = str(loss.dtype)

    def profiled(self, batches):
        """Of the GPU's time the share of cubind's kernels, and the kernels that take the most of it."""
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            for batch in batches:
                self.running.step(batch)
            torch.cuda.synchronize()
        times = {event.key: event.self_device_time_total for event in seen.key_averages()}
        total = sum(times.values())
        own = sum(time for name, time in times.items() if OWN.search(name))
        first = sorted(times.items(), key=lambda item: -item[1])[:12]
        kernels = {name[:120]: time / len(batches) for name, time in first}
        self.profile = {"share": own / total, "gpu_ms": total / len(batches) / 1e3, "kernels_us": kernels}

    def result(self):
        return {
            "median_ms": statistics.median(self.times),
            "interval_ms": interval(self.times),
            "peak_gib": max(self.peaks),
            **self.profile,
            "losses": self.losses,
            "loss_dtype": self.loss_dtype,
            "times_ms": self.times,
        }


def measure(model, steps, wanted):
    turn, subject, sides, errors = Turn(), SUBJECTS[model], {}, {}
    again = tune(model, wanted)
    for side in wanted:
        try:
            sides[side] = Measured(subject, side)
        except Exception as error:
            errors[side] = f"{type(error).__name__}: {error}"[:2000]
    turn.give()
    print("ready", flush=True)
    sys.stdin.readline()
    turn.take()
    for _ in range(steps):
        batch = subject.batch()
        for side in sides.values():
            side.step(batch)
    batches = [subject.batch() for _ in range(PROFILED)]
    for name, side in sides.items():
        if name != FLOAT32:
            side.profiled(batches)
    found = {side: measured.result() for side, measured in sides.items()}
    fastest = min(found, key=lambda side: found[side]["median_ms"])
    return {
        "model": model,
        "toolchain": toolchain(None),
        "tuned_again": again,
        "sides": found,
        "over_fastest": {side: paired(found, side, fastest) for side in found},
        "over_torch_compiled": {
            side: paired(found, "torch_compiled", side)
            for side in found
            if "torch_compiled" in found and side.startswith("cubind")
        },
        "errors": errors,
        "report": cubind.torch.report(),
    }


def paired(found, base, side):
    """The median, and its interval, of the first side's times over the second's, step by step."""
    ratios = [a / b for a, b in zip(found[base]["times_ms"], found[side]["times_ms"], strict=True)]
    return statistics.median(ratios), *interval(ratios)


if __name__ == "__main__":
    what, models, *rest = sys.argv[1:]
    if what == "tune":
        print(json.dumps({model: tune(model, rest) for model in models.split(",")}))
    else:
        print(json.dumps(measure(models, int(rest[0]), rest[1:])))
