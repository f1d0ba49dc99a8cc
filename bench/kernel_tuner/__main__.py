"""The kernels of Kernel Tuner's examples, tuned by Kernel Tuner with CuPy and by cubind: seconds and winners.

    ./dev bench kernel_tuner --examples DIR --bin DIR --output FILE [--seeds N...] [--seconds S]
        [--kernels N...]

DIR of --examples is `examples` of a checkout of https://github.com/KernelTuner/kernel_tuner. Its scripts run
unedited under `python -m cubind.kernel_tuner`; both_sides.py gives both sides 60 configurations, Kernel Tuner
strategy="random_sample" and CuPy, and times both winners again. The first seed of every kernel comes
first. FILE is written after each script; what it has is not measured again, so a second call goes on where
the first ended. Kernel Tuner takes more than five minutes for convolution, which it compiles one by one.
Needs a GPU, CuPy, kernel_tuner with its dependencies, and the package cubind, whose programs --bin holds.
"""

import collections
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
from daemon import Daemon

# The calls of tune_kernel() that are measured: reduction.py tunes its second kernel 11 times.
SCRIPTS = {
    "vector_add": ("cuda-c++/vector_add.py", 1),
    "stencil": ("cuda/stencil.py", 1),
    "zeromeanfilter": ("cuda/zeromeanfilter.py", 2),
    "spmv": ("cuda/spmv.py", 1),
    "expdist": ("cuda/expdist.py", 2),
    "reduction": ("cuda/reduction.py", 1),
    "sepconv": ("cuda/sepconv.py", 2),
    "matmul": ("cuda/matmul.py", 1),
    "convolution": ("cuda/convolution.py", 1),
}
SIDES = ("kernel_tuner", "cubind")
STARTED_S = 1  # an agent's workers


def run_script(name, seed, arguments, until):
    """What both_sides.py found of each call, and the end of its output. The store and all caches are empty.
    Raises TimeoutExpired."""
    script, calls = SCRIPTS[name]
    order = SIDES if seed % 2 else SIDES[::-1]
    with (
        tempfile.TemporaryDirectory(prefix="cubind-kernel-tuner.") as folder,
        Daemon(arguments.bin, ["--no-shipped-kernels"]) as daemon,
    ):
        root, source = pathlib.Path(folder), arguments.examples / script
        shutil.copytree(source.parent, root / "examples")
        (root / "results").touch()
        while not daemon.offers_gpu() and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(STARTED_S)
        program = pathlib.Path(__file__).with_name("both_sides.py")
        command = [sys.executable, "-m", "cubind.kernel_tuner", program, source.name, str(seed), str(calls)]
        caches = {"CUPY_CACHE_DIR": str(root / "cupy"), "CUDA_CACHE_PATH": str(root / "cuda")}
        with subprocess.Popen(
            [*command, root / "results", *order],
            cwd=root / "examples",
            env=daemon.environment | caches,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                said, _ = process.communicate(timeout=until - time.monotonic())
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # its children too
                raise
        return [json.loads(line) for line in (root / "results").open()], said[-2000:]


def summary(runs):
    """By call the medians of its seeds, and the sums of the seconds of those that both sides ended."""
    calls, rows = collections.defaultdict(list), {}
    for run in runs:
        for result in run["calls"]:
            calls[f"{run['script']} {result['kernel']} {result['call']}"].append(result)
    for name, results in calls.items():
        ended = [each for each in results if "cubind" in each.get("timed_us", {})]
        rows[name] = {"seeds": len(results), "ended": len(ended)}
        for side in SIDES if ended else ():
            rows[name][f"{side}_s"] = statistics.median(each["sides"][side]["seconds"] for each in ended)
        for way in ("cold", "warm") if ended else ():
            ratios = [
                each["timed_us"]["cubind"][way] / each["timed_us"]["kernel_tuner"][way] for each in ended
            ]
            rows[name][f"{way}_ratio"] = statistics.median(ratios)
    return {"kernels": rows, "seconds": {s: sum(r.get(f"{s}_s", 0) for r in rows.values()) for s in SIDES}}


def measure(name, seed, arguments, until, runs):
    """Adds one script's run, unless the time does not suffice."""
    start = time.monotonic()
    if start + max((run["wall_s"] for run in runs if run["script"] == name), default=5) > until:
        return print(f"{name}, seed {seed}: not started, the time is over", flush=True)
    try:
        results, said = run_script(name, seed, arguments, until)
    except subprocess.TimeoutExpired:
        return print(f"{name}, seed {seed}: ended, the time is over", flush=True)
    wall = time.monotonic() - start
    print(f"{name}, seed {seed}: {wall:.1f} s {json.dumps(results) if results else said}", flush=True)
    if results:
        runs.append({"script": name, "seed": seed, "wall_s": wall, "calls": results})
        new = arguments.output.with_suffix(".new")
        new.write_text(json.dumps(summary(runs) | {"runs": runs}, indent=1) + "\n")
        new.replace(arguments.output)


def main():
    parser = command_line.make_parser(__doc__, required=["bin", "output"])
    parser.add_argument("--examples", type=pathlib.Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--seconds", type=float, default=36000, help="at most")
    parser.add_argument("--kernels", nargs="+", choices=list(SCRIPTS), default=list(SCRIPTS))
    arguments = parser.parse_args()
    until = time.monotonic() + arguments.seconds
    runs = json.loads(arguments.output.read_text())["runs"] if arguments.output.exists() else []
    for seed in arguments.seeds:
        for name in arguments.kernels:
            if not any((run["script"], run["seed"]) == (name, seed) for run in runs):
                measure(name, seed, arguments, until, runs)
    print(json.dumps(summary(runs), indent=1))


if __name__ == "__main__":
    main()
