"""The `mma.sync` engine of matmul, timed next to a variant of another engine: the fastest of a sample of
its configurations."""

import random

from checking import Checker, short
from timing import median

LARGE = 128 * 256  # elements of a tile from which on each configuration is tried


class MmaEngine(Checker):
    """Compiles begin at once. The space of an older GPU is asked for, since on this one the engine is left
    out of large problems."""

    def __init__(self, problems, count=16):
        super().__init__("matmul")
        self.device = {**self.device, "cc": 80}
        self.samples = [(p, self.sample(p, count)) for p in problems]
        for p, configurations in self.samples:
            for configuration in configurations:
                self.order(p, configuration)

    def sample(self, p, count):
        valid = self.configurations(p)
        large = [c for c in valid if c["BLOCK_M"] * c["BLOCK_N"] >= LARGE]
        drawn = random.Random(0).sample(valid, min(count, len(valid)))
        return large + [c for c in drawn if c not in large]

    def fastest(self, p, operands, timer):
        """(configuration, call)"""
        configurations = next(sample for problem, sample in self.samples if problem == p)
        named = {short(c): c for c in configurations}
        calls = {name: self.call(p, c, operands) for name, c in named.items()}
        calls = {name: call for name, call in calls.items() if call}
        times = {name: median(samples) for name, samples in timer.samples(calls, 5).items()}
        best = min(times, key=times.get)
        for name, call in calls.items():
            if name != best:
                call.unload()
        return named[best], calls[best]
