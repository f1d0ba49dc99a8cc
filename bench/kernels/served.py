"""What a daemon serves for the problems of the bench."""

import concurrent.futures
import dataclasses
import time
import traceback


@dataclasses.dataclass
class Served:
    """`seconds` is the time of the tuning, where there was one; `error` says why nothing is served."""

    seconds: float | None = None
    cubin: bytes = b""
    plan: dict = dataclasses.field(default_factory=dict)
    error: str | None = None


def known(daemon, kernel, problem):
    """What the daemon's table has for just this problem, or None."""
    try:
        cubin, plan = daemon.get(kernel, problem, "--accept", "exact", "--tune", "never")
    except RuntimeError:
        return None
    print(f"{kernel} {problem}: served", flush=True)
    return Served(cubin=cubin, plan=plan)


def tuned(daemon, kernel, problem):
    served = Served()
    try:
        served.seconds = daemon.tune(kernel, problem)
        served.cubin, served.plan = daemon.get(kernel, problem)
    except Exception:
        served.error = traceback.format_exc(limit=2)[-4000:]
    print(f"{kernel} {problem}: {served.error or f'tuned in {served.seconds:.1f} s'}", flush=True)
    return served


def serve_all(daemon, todo, from_table, end):
    """What is served for each (kernel, problem), and the end of the daemon's log. It comes before this
    process has a context: the GPU is the daemon's alone. With `from_table` what is known is not tuned. A
    tuning that is not begun by the time `end` is left out: None."""
    with daemon:
        served = [None] * len(todo)
        if from_table:
            # Several at a time: the daemon compiles what a table does not carry.
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                served = list(pool.map(lambda one: known(daemon, *one), todo))
        for index, one in enumerate(todo):
            if served[index] is None and time.monotonic() < end:
                served[index] = tuned(daemon, *one)
        return served, daemon.log_tail()
