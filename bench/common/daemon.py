"""A cubind daemon of one's own: started in a temporary folder, asked through cubindctl, ended with the
block."""

import json
import os
import pathlib
import subprocess
import tempfile
import threading
import time


class Daemon:
    """Tunes on the GPU of this machine, starting from an empty store. `bin_dir` holds the programs.
    `environment`: of it and of cubindctl, in addition to this process's own."""

    def __init__(self, bin_dir, options=(), *, shipped_tables=False, environment=()):
        self.bin = pathlib.Path(bin_dir).resolve()
        self.additional = dict(environment)
        self.options = [*options] if shipped_tables else ["--no-shipped-tables", *options]

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="cubind-bench.")
        root = pathlib.Path(self.folder.name)
        self.store = root / "store.db"
        self.address = f"unix://{root}/cubind.sock"
        self.environment = {**os.environ, **self.additional, "CUBIND_ADDRESS": self.address}
        self.log = (root / "log").open("w+")
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        """Once more after end(), with the same store."""
        socket = self.address.removeprefix("unix://")
        command = [self.bin / "cubind", "--db", self.store, "--socket", socket, *self.options]
        self.process = subprocess.Popen(
            command, env=self.environment, stdout=self.log, stderr=subprocess.STDOUT
        )
        self.call("health", "--wait", "30")

    def end(self, limit=20):
        """Seconds from SIGTERM to the end; infinite where it had to be killed after `limit` seconds."""
        start = time.monotonic()
        self.process.terminate()
        try:
            self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.kill()
            return float("inf")
        return time.monotonic() - start

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __exit__(self, *_):
        self.end()
        self.log.close()
        self.folder.cleanup()

    def log_tail(self, characters=4000):
        self.log.flush()
        return pathlib.Path(self.log.name).read_text()[-characters:]

    def offers_gpu(self):
        """Whether an agent offers one."""
        return any(device["offered"] for device in json.loads(self.call("devices", "--json"))["devices"])

    def kernels(self):
        """The names of those that it can tune."""
        return [kernel["name"] for kernel in json.loads(self.call("kernels", "--json"))["kernels"]]

    def tune(self, kernel, problem, *options, seconds=120):
        """Seconds from the call to the stored record."""
        start = time.monotonic()
        self.call("tune", kernel, "--problem", spelled(problem), *options, seconds=seconds)
        return time.monotonic() - start

    def get(self, kernel, problem, *options):
        """(cubin, plan): what is served for the problem. Threads may call it at a time."""
        cubin = pathlib.Path(self.folder.name) / f"{threading.get_ident()}.cubin"
        text = self.call("get", kernel, "--problem", spelled(problem), "--json", "-o", str(cubin), *options)
        return cubin.read_bytes(), json.loads(text)

    def call(self, *arguments, seconds=60):
        run = subprocess.run(
            [self.bin / "cubindctl", *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        if run.returncode != 0:
            raise RuntimeError(
                f"cubindctl {' '.join(arguments)}: exit code {run.returncode}\n{run.stderr[-2000:]}"
                f"\n{run.stdout[-1000:]}\ndaemon: {self.log_tail(1500)}"
            )
        return run.stdout


class RunningDaemon(Daemon):
    """One that the caller does not start or end, at `address`. What is tuned there already is not tuned
    again."""

    def __init__(self, bin_dir, address):
        super().__init__(bin_dir)
        self.environment = {**os.environ, "CUBIND_ADDRESS": address}

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="cubind-bench.")
        self.call("health", "--wait", "30")
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def log_tail(self, characters=4000):
        return ""


def kernels_of(folder):
    """Options for a daemon that knows the kernels of the folder and no others."""
    return ["--no-shipped-kernels", "--kernels", str(folder)]


def spelled(problem):
    return ",".join(f"{name}={value}" for name, value in problem.items())
