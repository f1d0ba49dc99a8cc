"""How the way of clearing the L2 ahead of a kernel changes the kernel's time and its scatter.

    python3 bench/l2_flush [--samples 30] [--output FILE]

Short kernels of the library, in the configuration of the shipped table, behind a kernel that writes twice the
L2, one that reads as much, one that reads four times the L2, and writing followed by reading. The samples of
a way take turns among eight places of the buffers; the ways follow each other forwards and backwards.
`slot` is the deviation between places as a share of the time, by two halves of the samples. Needs torch and
a table of the device in variants/tables.
"""

import ctypes
import json
import os
import pathlib
import statistics
import sys

os.environ.setdefault("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")  # buffers as far apart as the tuner's

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
sys.path.append(str(pathlib.Path(__file__).parents[1] / "kernels"))
sys.path.append(str(pathlib.Path(__file__).parents[1] / "repeats"))
import command_line
import oracle
import torch
from compiling import Compiler
from daemon import spelled
from device import device_constants
from driver import Kernel, compile_source
from machine import toolchain
from spec import Spec
from timing import FLUSH, FLUSH_BY_WRITING, OWN_KERNELS, groups_of
from torch.profiler import ProfilerActivity, profile

ROOT = pathlib.Path(__file__).parents[2]
D, SLOTS = 4096, 8
ROWS = {
    "rmsnorm_forward": [1, 64, 1024, 16384],
    "softmax_forward": [1024],
    "softmax_backward": [64, 1024, 8192],
    "weighted_sum_forward": [64, 1024],
}


def ways():
    """{name: a call that clears the L2}"""
    writing, _ = compile_source(pathlib.Path(__file__).with_name("flush.cu"), [])
    reading = OWN_KERNELS.read_bytes()
    l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    written = torch.zeros(2 * l2_bytes, dtype=torch.uint8, device="cuda")
    read, nowhere = torch.zeros_like(written.repeat(2)), torch.zeros(1, dtype=torch.int32, device="cuda")

    def launch(cubin, symbol, times, buffer, *more):
        count = ctypes.c_int64(times * l2_bytes // 16)
        return Kernel(cubin, symbol, (4096, 1, 1), (256, 1, 1)).bind([buffer, count, *more])

    write = launch(writing, FLUSH_BY_WRITING, 2, written)
    reads = {times: launch(reading, FLUSH, times, read, nowhere) for times in (2, 4)}
    return {
        "write 2": write,
        "read 2": reads[2],
        "read 4": reads[4],
        "write 2, read 2": lambda: (write(), reads[2]()),
    }


def measure(flush, call, samples):
    """[times of a place, ...]"""
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(samples):
            for plan in call.plans:
                flush()
                plan()
        torch.cuda.synchronize()
    times = [(end - start) / 1000 for start, end in groups_of(profiler)]
    if len(times) != samples * SLOTS:
        raise RuntimeError(f"{samples * SLOTS} samples were taken, the profiler shows {len(times)}")
    return [times[slot::SLOTS] for slot in range(SLOTS)]


def slot_deviation(halves):
    """From the places' means in two halves: what they have in common is no scatter of samples."""
    shares = []
    for half in halves:
        means = [oracle.trimmed_mean(times) for times in half]
        shares.append([one / statistics.fmean(means) - 1 for one in means])
    return max(statistics.fmean(a * b for a, b in zip(*shares)), 0) ** 0.5


def summary(halves):
    every = sorted(time for half in halves for times in half for time in times)
    tenth, median, last_tenth = (every[int(share * (len(every) - 1))] for share in (0.1, 0.5, 0.9))
    us = {"mean": oracle.trimmed_mean(every), "p10": tenth, "median": median, "p90": last_tenth}
    return {"us": us, "spread": (last_tenth - tenth) / median, "slot": slot_deviation(halves)}


def shipped(kernel, problem):
    """The configuration of the shipped table."""
    for file in sorted((ROOT / "variants" / "tables").glob("*.json")):
        for record in json.loads(file.read_text())["records"]:
            if (
                record["kernel"] == kernel
                and {**record["problem"]["dims"], **record["problem"]["types"]} == problem
            ):
                return record["configuration"]
    raise RuntimeError(f"no shipped table has {kernel} {spelled(problem)}")


def main():
    parser = command_line.make_parser(__doc__, optional=["output", "commit"])
    parser.add_argument("--samples", type=int, default=30, help="at each place, in each of two passes")
    arguments = parser.parse_args()
    device, flushes = device_constants(), ways()
    compiler = Compiler(f"sm_{device['cc']}")
    result = toolchain(arguments.commit) | {"kernels": {}}
    for kernel, sizes in ROWS.items():
        spec = Spec.read(next((ROOT / "variants").glob(f"*/{kernel}.json")))
        for rows in sizes:
            problem = {"N": rows, "D": D, "T": "bf16"}
            bound = oracle.Problem(spec, problem, device, SLOTS)
            call = bound.call(compiler, shipped(kernel, problem))
            halves = {way: [] for way in flushes}
            for way in [*flushes, *reversed(flushes)]:
                halves[way].append(measure(flushes[way], call, arguments.samples))
            label = f"{kernel} {spelled(problem)}"
            result["kernels"][label] = {way: summary(half) for way, half in halves.items()}
            for way, one in result["kernels"][label].items():
                print(
                    f"{label:36} {way:16} {one['us']['mean']:7.2f} us, p10 to p90 {100 * one['spread']:5.1f} %, "
                    f"places {100 * one['slot']:4.2f} %",
                    flush=True,
                )
            call.unload()
    compiler.close()
    command_line.write(result, arguments.output)


if __name__ == "__main__":
    main()
