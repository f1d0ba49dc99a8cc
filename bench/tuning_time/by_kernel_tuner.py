"""The seconds of Kernel Tuner's tune_kernel over the 48 configurations, by CuPy. It compares no results."""

import contextlib
import json
import sys
import time

import cupy
import kernel_tuner
import numpy
from problem import EPS, KERNELS, TUNABLES, D, N

# The source's templates have parameters of the tunables' own names, which Kernel Tuner defines as macros.
NAMES = {"THREADS": "block_size_x"} | {name: f"tuned_{name}" for name in TUNABLES if name != "THREADS"}
ORDER = ["THREADS", "VECTOR", "ROWS", "MODE", "UNROLL", "CACHE"]

x = numpy.random.default_rng(1).integers(0x3C00, 0x3F80, N * D, dtype=numpy.uint16)  # bits of bf16
w = x[:D].copy()
y = numpy.zeros_like(x)
cupy.zeros(1).sum().get()  # the context
begun = time.monotonic()
with contextlib.redirect_stdout(sys.stderr):
    results, _ = kernel_tuner.tune_kernel(
        f"rmsnorm_forward<__nv_bfloat16, {', '.join(NAMES[name] for name in ORDER)}, {D}>",
        (KERNELS / "rmsnorm.cu").read_text(),
        N,
        [x, w, y, numpy.int64(N), numpy.float32(EPS)],
        {NAMES[name]: values for name, values in TUNABLES.items()},
        grid_div_x=["tuned_UNROLL"],
        lang="CUPY",
        compiler_options=["-std=c++17", "--minimal", f"-I{KERNELS.parent / 'common'}"],
    )
seconds = time.monotonic() - begun
timed = [result for result in results if isinstance(result["time"], float)]
best = min(timed, key=lambda result: result["time"])
winner = {name: best[tuned] for name, tuned in NAMES.items()}
print(json.dumps({"seconds": seconds, "winner": winner, "us": 1000 * best["time"], "timed": len(timed)}))
