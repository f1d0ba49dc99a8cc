"""Time to the first result of a tuned kernel in a fresh process: cubind, Triton's autotuner, torch.

    python3 bench/first_launch [--runs 10] [--output FILE]

RMSNorm of 16384 x 4096 bf16. Each run is a process of its own: the clock starts when torch is imported and
the inputs lie on the GPU, and stops when the first output is complete, so it includes the import of cubind or
of the Triton kernel. Sides, in turn:

- cubind_daemon: a daemon runs and has tuned the problem
- cubind_private: the process starts the private daemon, whose store holds the tuned problem
- triton_compiled: Triton's cache on disk holds all 48 configurations; the autotuner measures them again
- triton_cached_results: as before, with TRITON_CACHE_AUTOTUNING=1, which keeps the choice on disk
- torch: torch.nn.functional.rms_norm

Needs the package `cubind`, torch, Triton and a GPU. Exit status 1: an output is wrong.
"""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
import cubind.embedded
from machine import toolchain

N, D, EPS = 16384, 4096, 1e-6

BEGIN = f"""
import sys, time, torch
N, D, EPS = {N}, {D}, {EPS}
torch.manual_seed(0)
x = torch.randn(N, D, device="cuda", dtype=torch.bfloat16)
w = torch.randn(D, device="cuda", dtype=torch.bfloat16)
y = torch.empty_like(x)
torch.cuda.synchronize()
start = time.perf_counter()
"""
END = """
torch.cuda.synchronize()
milliseconds = 1e3 * (time.perf_counter() - start)
expected = torch.nn.functional.rms_norm(x.float(), [D], w.float(), EPS)
torch.testing.assert_close(y.float(), expected, rtol=1.6e-2, atol=1e-5)
print(milliseconds)
"""
CUBIND = """
import cubind
cubind.connect(ADDRESS).kernel("rmsnorm_forward")(x=x, w=w, y=y, eps=EPS)
"""
TRITON = f"""
sys.path.append({str(pathlib.Path(__file__).parents[1] / "common")!r})
import triton_kernel
triton_kernel.rmsnorm(x, w, y, EPS)
"""
TORCH = "y = torch.nn.functional.rms_norm(x, [D], w, EPS)\n"


def first_result(body, environment):
    """Milliseconds that one process needs."""
    run = subprocess.run(
        [sys.executable, "-c", BEGIN + body + END],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(run.stdout.splitlines()[-1])


def tune(environment):
    """The problem in the private daemon of these folders, by a process of its own."""
    script = (
        "import cubind, sys\n"
        'client = cubind.connect("embedded")\n'
        f'result, = client.tune([{{"kernel": "rmsnorm_forward", "N": {N}, "D": {D}, "T": "bf16"}}])\n'
        "sys.exit(result.error or 0)\n"
    )
    subprocess.run([sys.executable, "-c", script], env={**os.environ, **environment}, check=True)


def await_end_of_daemon(folder):
    """The private daemon ends a second after the last process that used it."""
    socket = folder / "cubind" / "embedded" / "cubind.sock"
    end = time.monotonic() + 30
    while cubind.embedded.listens(socket) and time.monotonic() < end:
        time.sleep(0.05)


def measure(runs, root):
    """From side to milliseconds of each run."""
    private, serving = root / "private", root / "serving"
    folders = {
        folder: {"XDG_CACHE_HOME": str(folder), "XDG_RUNTIME_DIR": str(folder)}
        for folder in (private, serving)
    }
    for folder, environment in folders.items():
        folder.mkdir(mode=0o700)
        tune(environment)
        await_end_of_daemon(folder)
    os.environ.update(folders[serving])
    daemon = cubind.EmbeddedDaemon()
    triton = {"TRITON_CACHE_DIR": str(root / "triton")}
    results = {"TRITON_CACHE_DIR": str(root / "triton_results"), "TRITON_CACHE_AUTOTUNING": "1"}
    first_result(TRITON, triton)
    shutil.copytree(triton["TRITON_CACHE_DIR"], results["TRITON_CACHE_DIR"])
    first_result(TRITON, results)
    sides = {
        "cubind_daemon": (CUBIND.replace("ADDRESS", repr(daemon.address)), {}),
        "cubind_private": (CUBIND.replace("ADDRESS", '"embedded"'), folders[private]),
        "triton_compiled": (TRITON, triton),
        "triton_cached_results": (TRITON, results),
        "torch": (TORCH, {}),
    }
    times = {name: [] for name in sides}
    for run in range(runs):
        for name, side in sides.items():
            times[name].append(first_result(*side))
        print(run, {name: round(values[-1]) for name, values in times.items()}, flush=True)
        await_end_of_daemon(private)
    daemon.close()
    return times


def main():
    parser = command_line.make_parser(__doc__, optional=["output", "commit"])
    parser.add_argument("--runs", type=int, default=10)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cubind-first.") as folder:
        times = measure(arguments.runs, pathlib.Path(folder))
    for name, values in times.items():
        print(f"{name}: median {statistics.median(values):.0f} ms, {min(values):.0f} to {max(values):.0f}")
    # Opens the GPU: after the processes that measure.
    document = {
        **toolchain(arguments.commit),
        "problem": {"N": N, "D": D, "T": "bf16"},
        "milliseconds": times,
    }
    command_line.print_and_write(document, arguments.output)


if __name__ == "__main__":
    main()
