"""The calls that are measured at one problem, in turn: cubind's, those it is compared with, and a copy."""

import random
import traceback

import torch
import triton
from copies import fastest_copy
from driver import bind_plan
from timing import median


class Sides:
    """A side that cannot be made or gives wrong results says so and is not timed."""

    def __init__(self, subject):
        self.subject = subject
        self.calls, self.errors, self.worst = {}, {}, {}

    def add(self, name, make):
        """`make` gives a call; what the call returns, or else the output buffers, is compared with the
        truth."""
        try:
            self.subject.clear()
            call = make()
            results = call()
            torch.cuda.synchronize()
            written = list(self.subject.outputs.values()) if results is None else list(results)
            self.worst[name] = self.subject.worst(written)
            self.calls[name] = call
        except Exception:
            self.errors[name] = traceback.format_exc(limit=4)[-3000:]

    def add_all(self, served):
        subject = self.subject
        if served.error:
            self.errors["cubind"] = served.error
        else:
            self.add("cubind", lambda: bind_plan(served.cubin, served.plan, subject.tensors, subject.scalars))
        for name, make in subject.others().items():
            self.add(name, make)

    def add_copy(self, timer, copies):
        """Of as many bytes as the kernel moves; which of the copies it is."""
        if not self.subject.copied_bytes:
            return None
        x, y = (torch.empty(self.subject.copied_bytes, dtype=torch.uint8, device="cuda") for _ in range(2))
        setting, self.calls["vector_copy"] = fastest_copy(timer, copies, x, y)
        return setting

    def times(self, timer, rounds):
        """Microseconds by side: medians, the least and the largest, and torch's do_bench."""
        samples = timer.samples(self.calls, rounds, seed=random.randrange(1 << 30))
        return {
            "kernel_time_us": {name: median(values) for name, values in samples.items()},
            "kernel_time_spread_us": {name: [min(v), max(v)] for name, v in samples.items()},
            "do_bench_time_us": {name: self.do_bench(call) for name, call in self.calls.items()},
        }

    @staticmethod
    def do_bench(call):
        return 1000 * triton.testing.do_bench(call, warmup=10, rep=40, return_mode="median")
