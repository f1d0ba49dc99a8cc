"""Kernels compiled ahead by processes of their own, without a CUDA context; NVRTC's threads wait for each
other."""

import base64
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import nvrtc


def compile_apart(order):
    """(cubin, {entry: symbol}, error), by a process that ends with it: an error where there is no cubin."""
    done = subprocess.run(
        [sys.executable, __file__], input=json.dumps(order).encode(), capture_output=True, check=False
    )
    if done.returncode != 0:
        return None, {}, done.stderr.decode() or f"the compiler ended with the exit code {done.returncode}"
    reply = json.loads(done.stdout)
    return base64.b64decode(reply["cubin"]), reply["symbols"], ""


class Compiler:
    """Each distinct list of entries is compiled once, several at a time."""

    def __init__(self, architecture, jobs=None):
        self.architecture = architecture
        self.pool = concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count())
        self.results = {}

    def start(self, spec, entries):
        key = (str(spec.source), tuple(entries))
        if key not in self.results:
            folders = [str(folder) for folder in [*spec.include, nvrtc.cuda_headers()]]
            order = [str(spec.source), entries, self.architecture, folders]
            self.results[key] = self.pool.submit(compile_apart, order)
        return self.results[key]

    def close(self):
        self.pool.shutdown(cancel_futures=True)


if __name__ == "__main__":
    made = nvrtc.compile_source(*json.load(sys.stdin))
    json.dump({"cubin": base64.b64encode(made.cubin).decode(), "symbols": made.symbols}, sys.stdout)
