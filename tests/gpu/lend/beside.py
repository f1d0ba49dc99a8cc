"""What both scripts here need: a daemon of their own, and another process that uses the GPU."""

import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile

from cubind import programs

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
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        command = [programs.program("cubind"), "--socket", folder / "s", "--db", folder / "store.db"]
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(
                [*command, "--no-shipped-tables"], stdout=log, stderr=log, env=programs.environment()
            )
        try:
            address = f"unix://{folder}/s"
            health = [programs.program("cubindctl"), "--address", address, "health", "--wait", "60"]
            subprocess.run(health, check=True, stdout=subprocess.DEVNULL)
            yield address
        finally:
            process.terminate()
            process.wait()


def job(client):
    """The only job of the client's daemon that has not ended."""
    command = [programs.program("cubindctl"), "--address", client.address, "jobs", "--json"]
    jobs = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["jobs"]
    return {"state": "", "stage": "", "note": ""} | (jobs[0] if jobs else {})


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
