"""What both scripts here need: a daemon of their own, and another process that uses the GPU."""

import contextlib
import pathlib
import subprocess
import sys

from cubind import programs

sys.path.append(str(pathlib.Path(__file__).parents[3] / "bench/common"))
from daemon import Daemon

SKIPPED = 77
# Has a context, and works for so many seconds as a line of its standard input says.
OTHER = """
import sys, time, torch
a = torch.ones(8192, 8192, device="cuda", dtype=torch.bfloat16)
torch.cuda.synchronize()
print("ready", flush=True)
for seconds in sys.stdin:
    until = time.monotonic() + float(seconds)
    while time.monotonic() < until:
        a @ a
        torch.cuda.synchronize()
    print("idle", flush=True)
"""


@contextlib.contextmanager
def daemon():
    """The address of one with a store of its own."""
    with Daemon(programs.program("cubind").parent, environment=programs.environment()) as made:
        yield made.address


def job(client):
    """The only job of the client's daemon that has not ended."""
    return {"state": "", "stage": "", "note": ""} | next(iter(client.jobs()), {})


@contextlib.contextmanager
def other_process():
    """One that has a context on the GPU, and lends it to none."""
    process = subprocess.Popen(
        [sys.executable, "-c", OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def works(process, seconds):
    """From now on; other_process() writes a line afterwards."""
    process.stdin.write(f"{seconds}\n")
    process.stdin.flush()
