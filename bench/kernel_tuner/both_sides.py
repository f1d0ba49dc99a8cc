"""Runs a script of Kernel Tuner whose tune_kernel() tunes on both sides, each in a process of its own:

    python -m cubind.kernel_tuner both_sides.py SCRIPT SEED CALLS RESULTS SIDE SIDE

A process is forked for each side and for the timing of both winners, so the arrays are made once and one
process at a time uses the GPU. The script goes on with cubind's results and ends after CALLS calls. RESULTS
gets a line of JSON for each.
"""

import contextlib
import functools
import json
import multiprocessing
import os
import random
import runpy
import statistics
import sys
import time

import kernel_tuner
import numpy
from kernel_tuner import core, interface

BUDGET = {"strategy": "random_sample", "strategy_options": {"max_fevals": 60}, "lang": "CUPY"}
ROUNDS, WARM_LAUNCHES = 21, 3
GIVEN = ("kernel_name", "kernel_source", "problem_size", "arguments", "tune_params")
FORK = multiprocessing.get_context("fork")
OURS = kernel_tuner.tune_kernel  # put there by cubind.kernel_tuner


def in_child(function, *arguments):
    """What it returns in a process of its own; {"error": ...} if it raises or the process dies."""
    ours, theirs = FORK.Pipe(duplex=False)

    def run():
        try:
            with contextlib.redirect_stdout(sys.stderr):
                theirs.send(function(*arguments))
        except BaseException as error:
            theirs.send({"error": f"{type(error).__name__}: {error}"[:1500]})

    process = FORK.Process(target=run)
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        return {"error": "the process died"}
    finally:
        process.join()


def started_cupy():
    """CuPy with a context. It cuts the UUID of a GPU at a zero byte, and Kernel Tuner refuses the rest."""
    import cupy  # noqa: PLC0415  the parent has no context

    properties = cupy.cuda.runtime.getDeviceProperties

    def whole(device):
        found = properties(device)
        return {**found, "uuid": found["uuid"].ljust(16, b"\0")}

    cupy.cuda.runtime.getDeviceProperties = whole
    cupy.zeros(1)
    return cupy


def refuse(*_, **__):
    raise RuntimeError("cubind.kernel_tuner leaves it to Kernel Tuner")


def tuned(side, given, options):
    """Seconds, the winner, its time as the side reports it, and what tune_kernel() returned."""
    function = type(OURS)(refuse)
    if side == "kernel_tuner":
        started_cupy()  # its start does not count
        function = OURS.__wrapped__
    start = time.perf_counter()
    results, environment = function(*given, **options)
    seconds, best = time.perf_counter() - start, environment["best_config"]
    return {
        "seconds": seconds,
        "configurations": len(results),
        "failed": sum("__error__" in row for row in results),
        "winner": {name: best[name] for name in given[4]},
        "own_us": 1000 * best["time"],
        "returned": (results, environment),
    }


def timed_again(given, options, winners):
    """Microseconds of each side's winner by CuPy's events, medians of interleaved rounds: cold (a launch
    after the L2 was overwritten) and warm (the mean of launches in a row). Compiled and launched by Kernel
    Tuner's functions."""
    cupy = started_cupy()
    source = core.KernelSource(given[0], given[1], "CUPY")
    named = {**dict.fromkeys(interface._kernel_options), **options, **dict(zip(GIVEN, given))}
    kernel_options = interface.Options(named)
    device = core.DeviceInterface(source, quiet=True, compiler_options=options.get("compiler_options"))
    arguments, stream, launches = device.ready_argument_list(given[3]), device.dev.stream, {}
    for side, winner in winners.items():
        made = device.create_kernel_instance(source, kernel_options, winner, False)
        compiled = device.compile_kernel(made, False)
        if options.get("cmem_args"):
            device.copy_constant_memory_args(options["cmem_args"])
        launches[side] = functools.partial(device.run_kernel, compiled, arguments, made)
    flush = cupy.zeros(cupy.cuda.runtime.getDeviceProperties(0)["l2CacheSize"] // 2, dtype=cupy.int32)
    start, end = cupy.cuda.Event(), cupy.cuda.Event()

    def microseconds(launch, times):
        start.record(stream)
        for _ in range(times):
            launch()
        end.record(stream)
        end.synchronize()
        return 1000 * cupy.cuda.get_elapsed_time(start, end) / times

    found = {side: {"cold": [], "warm": []} for side in launches}
    for number in range(ROUNDS):
        for side in sorted(launches, reverse=bool(number % 2)):
            with stream:
                flush.fill(number)
            found[side]["cold"].append(microseconds(launches[side], 1))
            launches[side]()  # the GPU is busy when the first event is recorded
            found[side]["warm"].append(microseconds(launches[side], WARM_LAUNCHES))
    return {
        side: {way: statistics.median(us[1:]) for way, us in both.items()} for side, both in found.items()
    }


def main():
    script, seed, calls, file, *order = sys.argv[1:]
    random.seed(int(seed))
    numpy.random.seed(int(seed))
    done = 0

    def tune_kernel(*given, **options):
        nonlocal done
        options |= {**BUDGET, "seed": int(seed)}
        sides = {side: in_child(tuned, side, given, options) for side in order}
        returned = [sides[side].pop("returned", None) for side in ("cubind", "kernel_tuner")]
        winners = {side: each["winner"] for side, each in sides.items() if "winner" in each}
        result = {"kernel": given[0], "call": done, "order": order, "sides": sides}
        if len(winners) == len(order):
            result["timed_us"] = in_child(timed_again, given, options, winners)
        with open(file, "a") as lines:
            lines.write(json.dumps(result, default=str) + "\n")
        done += 1
        if done == int(calls) or not any(returned):
            sys.exit(0)
        return returned[0] or returned[1]

    kernel_tuner.tune_kernel = interface.tune_kernel = tune_kernel
    sys.argv[:] = [script]
    sys.path[0] = os.getcwd()
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
