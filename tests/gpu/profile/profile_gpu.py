"""cubindctl profile with NVIDIA's ncu.

    python tests/gpu/profile/profile_gpu.py FOLDER

FOLDER is a package (bin/cubind, bin/cubindctl, ...). Needs a GPU that no other process uses, ncu, and the
permission to read the GPU's counters.
"""

import contextlib
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
RMSNORM = ("rmsnorm_forward", "N=65536,D=4096,T=bf16")
MATMUL = ("matmul", "M=4096,N=4096,K=4096,T=bf16")


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

    def prepared(self, kernel, problem):
        """The command that profiles the variant, from a launch file in the folder."""
        self.tuned(kernel, problem)
        result = self.ctl("profile", kernel, "--problem", problem, "--json")
        if result.returncode != 0:
            raise AssertionError(result.stderr)
        return json.loads(result.stdout)["command"]

    def run(self, command):
        return subprocess.run(
            shlex.split(command), cwd=self.folder, env=self.environment, capture_output=True, text=True
        )


class Profiles(unittest.TestCase):
    cubind: Cubind

    def test_ncu_profiles_each_launch_of_the_variant_alone(self):
        for kernel, problem in (RMSNORM, MATMUL):
            with self.subTest(kernel):
                result = self.cubind.run(self.cubind.prepared(kernel, problem))
                if "ERR_NVGPUCTRPERM" in result.stdout + result.stderr:
                    self.skipTest(result.stdout + result.stderr)
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                self.assertIn("Memory Throughput", result.stdout)

    def test_the_launcher_runs_without_a_profiler(self):
        command = self.cubind.prepared(*RMSNORM)
        launched = self.cubind.run(command[command.index(str(self.cubind.bin)) :])
        self.assertEqual((launched.returncode, launched.stderr), (0, ""))


def main(package):
    ncu = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    if not pathlib.Path("/dev/nvidiactl").exists() or not pathlib.Path(ncu).exists():
        print("there is no GPU or no ncu: these tests were not run", file=sys.stderr)
        return SKIPPED
    with tempfile.TemporaryDirectory() as name:
        environment = {**os.environ, "PATH": f"{pathlib.Path(ncu).parent}:{os.environ['PATH']}"}
        with Cubind(package.resolve(), pathlib.Path(name), environment).running() as cubind:
            Profiles.cubind = cubind
            result = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result
    if result.skipped:
        return SKIPPED
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1])))
