"""cubindctl profile with NVIDIA's ncu: the bytes that it counts are those that the kernels must move.

    python tests/gpu/profile/profile_gpu.py FOLDER [LOGS]

FOLDER is a package (bin/cubind, bin/cubindctl, ...). Needs a GPU that no other process uses, ncu, and the
permission to read the GPU's counters. What ncu printed is kept in the folder LOGS.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
REFUSED = 7
RMSNORM = ("rmsnorm_forward", "N=65536,D=4096,T=bf16")
MATMUL = ("matmul", "M=4096,N=4096,K=4096,T=bf16")

# Runs the ncu behind it in PATH, and keeps its log.
KEEPING_NCU = """#!/bin/sh
"{ncu}" "$@"
status=$?
while [ "$1" != --log-file ]; do shift; done
cp "$2" "{logs}/$(date +%s%N).csv"
exit $status
"""


class Cubind:
    """A daemon with a store of its own, and the command line that asks it."""

    def __init__(self, package, folder, environment):
        self.bin = package / "bin"
        self.address = f"unix://{folder}/s"
        self.folder = folder
        self.environment = environment

    @contextlib.contextmanager
    def running(self):
        command = [self.bin / "cubind", "--socket", self.folder / "s", "--db", self.folder / "store.db"]
        with (self.folder / "log").open("w") as log:
            process = subprocess.Popen([*command, "--no-shipped-tables"], stdout=log, stderr=log)
        try:
            self.ctl("health", "--wait", "60").check_returncode()
            yield self
        finally:
            process.terminate()
            process.wait()

    def ctl(self, *words):
        return subprocess.run(
            [self.bin / "cubindctl", "--address", self.address, *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
        )

    def tuned(self, kernel, problem):
        result = self.ctl("tune", kernel, "--problem", problem)
        if result.returncode != 0:
            raise AssertionError(result.stderr)

    def profile(self, kernel, problem):
        self.tuned(kernel, problem)
        print(self.ctl("profile", kernel, "--problem", problem).stdout)
        result = self.ctl("profile", kernel, "--problem", problem, "--json")
        if result.returncode == REFUSED and "ERR_NVGPUCTRPERM" in result.stderr:
            raise unittest.SkipTest(result.stderr)
        if result.returncode != 0:
            raise AssertionError(result.stderr)
        return json.loads(result.stdout)


class Profiles(unittest.TestCase):
    cubind: Cubind

    def check_time(self, document):
        self.assertLess(document["time_us"], 1.5 * document["tuned_us"])
        self.assertGreater(document["time_us"], 0.6 * document["tuned_us"])

    def test_a_norm_moves_what_it_must_at_the_memorys_peak(self):
        document = self.cubind.profile(*RMSNORM)
        must_read = 65536 * 4096 * 2
        self.assertAlmostEqual(document["launches"][0]["read_bytes"] / must_read, 1, delta=0.1)
        # Up to the whole L2 of the output need not be written yet.
        self.assertGreater(document["traffic_ratio"], 0.9)
        self.assertLess(document["traffic_ratio"], 1.15)
        self.assertEqual(document["diagnosis"]["rule"], "memory_peak")
        self.assertLess(document["launches"][0]["tensor_cores_ratio"], 0.01)
        self.assertTrue(document["launches"][0]["stalls"])
        self.check_time(document)

    def test_a_product_keeps_the_tensor_cores_busy(self):
        document = self.cubind.profile(*MATMUL)
        slowest = max(document["launches"], key=lambda launch: launch["time_us"])
        self.assertGreater(slowest["tensor_cores_ratio"], 0.4)
        self.assertGreater(document["traffic_ratio"], 0.6)
        self.assertLess(document["traffic_ratio"], 5)
        self.assertNotIn(document["diagnosis"]["rule"], ("tensor_idle", "memory_peak", "excess_traffic"))
        self.check_time(document)

    def test_the_launcher_runs_without_a_profiler(self):
        self.cubind.profile(*RMSNORM)
        launched = subprocess.run(
            [self.cubind.bin / "cubind-worker", "launch", "rmsnorm_forward.launch"],
            cwd=self.cubind.folder,
            capture_output=True,
            text=True,
        )
        self.assertEqual((launched.returncode, launched.stderr), (0, ""))


def main(package, logs):
    ncu = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    if not pathlib.Path("/dev/nvidiactl").exists() or not pathlib.Path(ncu).exists():
        print("there is no GPU or no ncu: these tests were not run", file=sys.stderr)
        return SKIPPED
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "path").mkdir()
        logs.mkdir(parents=True, exist_ok=True)
        wrapper = folder / "path" / "ncu"
        wrapper.write_text(KEEPING_NCU.format(ncu=ncu, logs=logs.resolve()))
        wrapper.chmod(0o755)
        environment = {**os.environ, "PATH": f"{wrapper.parent}:{os.environ['PATH']}"}
        with Cubind(package.resolve(), folder, environment).running() as cubind:
            Profiles.cubind = cubind
            result = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result
    if result.skipped:
        return SKIPPED
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    words = sys.argv[1:]
    if len(words) not in (1, 2):
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(words[0]), pathlib.Path(words[-1] if len(words) == 2 else "ncu-logs")))
