"""A daemon with something to show, on a machine without a GPU: recorded measurements, jobs that ended well
and ill, questions that nothing answers, training jobs of several generations."""

import contextlib
import json
import pathlib
import shutil
import socket
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "bench" / "common"))
from daemon import Daemon  # noqa: E402

TABLE = ROOT / "tests" / "golden" / "replay" / "rmsnorm.json"


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def await_site(site, seconds=30):
    until = time.monotonic() + seconds
    while True:
        try:
            urllib.request.urlopen(site).close()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return


class Filled(Daemon):
    """`site`: the address of its pages."""

    def __init__(self, bin_dir):
        port = free_port()
        self.site = f"http://127.0.0.1:{port}"
        self._table = tempfile.TemporaryDirectory(prefix="cubind-table.")  # whose path the pages show
        table = shutil.copy(TABLE, self._table.name)
        super().__init__(bin_dir, ["--replay", table, "--web", str(port)], shipped_tables=True)

    def __enter__(self):
        super().__enter__()
        await_site(self.site)
        return self

    def fill(self, trials=60):
        device = self.replayed()
        tune = ("tune", "rmsnorm_forward", "--problem")
        self.call(*tune, "N=4096,D=4096,T=bf16", "--max-trials", "8", seconds=300)
        for _ in range(4):
            self.ask("N=4096,D=4096,T=bf16", device, "llama-7b")
        self.call(*tune, "N=16384,D=4096,T=bf16", "--max-trials", str(trials), seconds=300)
        for _ in range(8):
            self.ask("N=16384,D=4096,T=bf16", device, "llama-13b")
        self.call(*tune, "N=4096,D=4096,T=bf16", "--retune", "--max-trials", "8", seconds=300)
        for _ in range(3):
            self.ask("N=4096,D=4096,T=bf16", device)
        with contextlib.suppress(RuntimeError):  # the table has no such problem
            self.call(*tune, "N=333,D=4096,T=bf16")
        for kernel, problem, times in WANTED:
            for _ in range(times):
                with contextlib.suppress(RuntimeError):  # its winner is still being compiled
                    self.call("get", kernel, "--problem", problem, "--device", "nvidia-h200")

    def run_job(self):
        """The id of a job that runs now."""
        problem = ("--problem", "N=65536,D=1024,T=bf16", "--max-trials", "40", "--retune")
        self.call("tune", "rmsnorm_forward", *problem, "--detach")
        return self.jobs("running", "queued")[0]

    def jobs(self, *states):
        jobs = json.loads(self.call("jobs", "--all", "--json"))["jobs"]
        return [job["id"] for job in jobs if job["kind"] == "tune" and job["state"] in states]

    def replayed(self):
        devices = json.loads(self.call("devices", "--json"))["devices"]
        return next(device["label"] for device in devices if device["offered"])

    def ask(self, problem, device, job=None):
        named = ("--job", job) if job else ()
        return self.call("get", "rmsnorm_forward", "--problem", problem, "--device", device, *named)


WANTED = (
    ("softmax_forward", "N=8192,D=32000,T=bf16", 5),
    ("layernorm_forward", "N=4096,D=5120,T=bf16", 2),
    ("matmul", "M=4096,N=4096,K=11008,T=bf16", 1),
)
