"""Compiles what torch.compile and Triton's autotuner need for a problem, into their caches on disk.

    python3 bench/kernels/ahead.py VARIANTS KERNEL PROBLEM

A process for each problem, several at a time: in one process after the other it would take most of the
    bench's time.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import subprocess
import sys

import torch

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import triton_kernels
from spec import Spec
from subjects import subject

COMPILED = ("torch_compile", "triton")


def compile_ahead(variants, todo, seconds=120):
    """Waits for all of it. What fails here fails again, and is reported, where it is measured."""
    one_thread = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1"}

    def run(one):
        command = [sys.executable, __file__, str(variants), one[0], json.dumps(one[1])]
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(command, env=one_thread, capture_output=True, timeout=seconds, check=False)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(run, todo))


def main():
    variants, kernel, problem = sys.argv[1:]
    torch.set_grad_enabled(False)
    triton_kernels.ONCE = True
    spec = Spec.read(next(pathlib.Path(variants).glob(f"*/{kernel}.json")))
    for name, make in subject(spec, json.loads(problem)).others().items():
        if name in COMPILED:
            with contextlib.suppress(Exception):
                make()()
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
