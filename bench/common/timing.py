"""Kernel times from CUPTI activity records (through torch's profiler), cold L2, candidates interleaved.

The L2 is cleared as the tuner clears it, by the same kernel: it reads twice the size of the L2. Another with
the same source changes the times of the shortest kernels by some tenths of a per cent.

Events around a kernel would add about 3 microseconds of launch gaps. Candidates are taken in a new random
order in each round, so that a drift of clocks or temperature falls on all of them.
"""

import ctypes
import pathlib
import random
import statistics
import time
import warnings

import torch
from driver import Kernel
from torch.profiler import ProfilerActivity, profile

OWN_KERNELS = pathlib.Path(__file__).parents[2] / "tuner" / "worker" / "device_kernels.ptx"
FLUSH, FLUSH_BY_WRITING = "cubind_read", "flush_by_writing"
warnings.filterwarnings("ignore", message=".*Profiler clears events at the end of each cycle.*")


class Timer:
    def __init__(self):
        properties = torch.cuda.get_device_properties(0)
        self.buffer = torch.zeros(2 * properties.L2_cache_size // 4, dtype=torch.int32, device="cuda")
        self.nowhere = torch.zeros(1, dtype=torch.int32, device="cuda")
        self.kernel = Kernel(OWN_KERNELS.read_bytes(), FLUSH, (4096, 1, 1), (256, 1, 1))
        self.flush = self.bound_flush()

    def bound_flush(self):
        """The clearing of the L2 as a call on torch's current stream."""
        return self.kernel.bind([self.buffer, ctypes.c_int64(self.buffer.numel() // 4), self.nowhere])

    def warm_up(self, seconds=0.5):
        """Keeps the GPU busy until its clocks have risen."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for _ in range(50):
                self.flush()
            torch.cuda.synchronize()

    def samples(self, candidates, rounds, seed=0, in_a_row=1):
        """{name: [microseconds, ...]}, `in_a_row` samples a round, for candidates {name: call}."""
        order = random.Random(seed)
        names = []
        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            for _ in range(rounds):
                turn = list(candidates)
                order.shuffle(turn)
                # A kernel's time depends on whether the number of launches before it is even.
                for _ in range(order.randrange(2)):
                    self.flush()
                for name in [name for name in turn for _ in range(in_a_row)]:
                    self.flush()
                    candidates[name]()
                    names.append(name)
            torch.cuda.synchronize()
        groups = groups_of(profiler)
        if len(groups) != len(names):
            raise RuntimeError(f"{len(names)} samples were taken, the profiler shows {len(groups)}")
        result = {name: [] for name in candidates}
        for name, (start, end) in zip(names, groups):
            result[name].append((end - start) / 1000)
        return result


def groups_of(profiler):
    """(first start, last end) in ns of the device work after each flush, in time order."""
    work = [
        (event.start_ns(), event.start_ns() + event.duration_ns(), event.name())
        for event in profiler.profiler.kineto_results.events()
        if event.device_type() == torch.autograd.DeviceType.CUDA and event.duration_ns() > 0
    ]
    work.sort()
    groups, current = [], None
    for start, end, name in work:
        if FLUSH in name or FLUSH_BY_WRITING in name:
            current = None
            continue
        if current is None:
            current = [start, end]
            groups.append(current)
        current[1] = max(current[1], end)
    return groups


def median(values):
    return statistics.median(values)
