"""The yardstick: the fastest of a few vector copies, timed in the same run as what is compared with it."""

import ctypes

from driver import Kernel
from timing import median

# Settings of the vector copy kernel: threads, vectors of a thread, evict-first. The fastest is the yardstick.
COPIES = [
    (128, 1, False),
    (256, 1, False),
    (128, 1, True),
    (256, 1, True),
    (128, 2, False),
    (256, 4, True),
    (512, 4, True),
]


def copy_expression(setting):
    threads, unroll, streaming = setting
    return f"vector_copy<{threads}, {unroll}, {str(streaming).lower()}>"


def vector_copy(setting, cubin, symbols, x, y):
    """A call that copies x to y."""
    threads, unroll, _ = setting
    count = x.numel() * x.element_size() // 16
    blocks = -(-count // (threads * unroll))
    kernel = Kernel(cubin, symbols[copy_expression(setting)], (blocks, 1, 1), (threads, 1, 1))
    return kernel.bind([x, y, ctypes.c_int64(count)])


def fastest_copy(timer, copies, x, y):
    """(setting, call) of the fastest vector copy of x to y."""
    calls = {setting: vector_copy(setting, *copies, x, y) for setting in COPIES}
    samples = timer.samples(calls, 20)
    best = min(calls, key=lambda setting: median(samples[setting]))
    return copy_expression(best), calls[best]
