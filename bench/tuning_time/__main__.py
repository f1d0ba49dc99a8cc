"""Time from the request to the winner of 48 configurations of RMSNorm: cubind, Triton's autotuner alone and
under cubind, Kernel Tuner.

    python3 bench/tuning_time --bin DIR [--rounds 3] [--sides NAME...] [--output FILE]

cubind and Kernel Tuner (with CuPy) tune the same 48 configurations of one CUDA source,
variants/rmsnorm/rmsnorm.cu, with the same options of NVRTC; Triton tunes 48 of its own kernel, alone and
under `python -m cubind.triton`, and all at 16384 x 4096 bf16. Each side starts with empty caches, in turn;
services are up and contexts made before the clock starts. cubind compares results with a reference, the
others compare none. DIR holds cubind's programs. Needs torch, Triton, CuPy, kernel_tuner and the package
`cubind`.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
from machine import toolchain

SIDES = {
    "cubind": "by_cubind.py",
    "triton": "by_triton.py",
    "cubind_triton": "by_cubind_triton.py",
    "kernel_tuner": "by_kernel_tuner.py",
}
FOLDER = pathlib.Path(__file__).parent


def time_side(name, bin_dir):
    """What the side's script prints: its seconds, its winner and the winner's time."""
    with tempfile.TemporaryDirectory(prefix="cubind-tuning.") as empty:
        caches = dict.fromkeys(
            ("TRITON_CACHE_DIR", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH", "XDG_CACHE_HOME"), empty
        )
        run = subprocess.run(
            [sys.executable, FOLDER / SIDES[name], bin_dir],
            env={**os.environ, **caches},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return json.loads(run.stdout.splitlines()[-1])


def main():
    parser = command_line.make_parser(__doc__, required=["bin"], optional=["output", "commit"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sides", nargs="+", choices=list(SIDES), default=list(SIDES))
    arguments = parser.parse_args()
    runs = {name: [] for name in arguments.sides}
    for _ in range(arguments.rounds):
        for name in arguments.sides:
            runs[name].append(time_side(name, arguments.bin.resolve()))
            print(f"{name}: {runs[name][-1]}", flush=True)
    result = {**toolchain(arguments.commit), "runs": runs}
    command_line.print_and_write(result, arguments.output)


if __name__ == "__main__":
    main()
