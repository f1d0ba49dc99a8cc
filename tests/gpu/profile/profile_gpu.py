"""cubindctl profile with NVIDIA's ncu.

    python tests/gpu/profile/profile_gpu.py FOLDER

FOLDER is a package (bin/cubind, bin/cubindctl, ...). Needs a GPU that no other process uses, ncu, and the
permission to read the GPU's counters.
"""

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).parents[3] / "bench/common"))
from daemon import Daemon, spelled

SKIPPED = 77
PROBLEMS = {
    "rmsnorm_forward": {"N": 65536, "D": 4096, "T": "bf16"},
    "matmul": {"M": 4096, "N": 4096, "K": 4096, "T": "bf16"},
}


class Profiles(unittest.TestCase):
    daemon: Daemon

    def prepared(self, kernel):
        """The command that profiles the tuned variant, from a launch file in the daemon's folder."""
        self.daemon.tune(kernel, PROBLEMS[kernel], seconds=600)
        named = ["--problem", spelled(PROBLEMS[kernel]), "-o", f"{self.daemon.folder.name}/launch"]
        return json.loads(self.daemon.call("profile", kernel, *named, "--json"))["command"]

    def run_command(self, command):
        return subprocess.run(
            shlex.split(command), env=self.daemon.environment, capture_output=True, text=True
        )

    def test_ncu_profiles_each_launch_of_the_variant_alone(self):
        for kernel in PROBLEMS:
            with self.subTest(kernel):
                result = self.run_command(self.prepared(kernel))
                if "ERR_NVGPUCTRPERM" in result.stdout + result.stderr:
                    self.skipTest(result.stdout + result.stderr)
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                self.assertIn("Memory Throughput", result.stdout)

    def test_the_launcher_runs_without_a_profiler(self):
        command = self.prepared("rmsnorm_forward")
        launched = self.run_command(command[command.index(str(self.daemon.bin)) :])
        self.assertEqual((launched.returncode, launched.stderr), (0, ""))


def main(package):
    ncu = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    if not pathlib.Path("/dev/nvidiactl").exists() or not pathlib.Path(ncu).exists():
        print("there is no GPU or no ncu: these tests were not run", file=sys.stderr)
        return SKIPPED
    path = f"{pathlib.Path(ncu).parent}:{os.environ['PATH']}"
    with Daemon(package / "bin", environment={"PATH": path}) as Profiles.daemon:
        result = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result
    if result.skipped:
        return SKIPPED
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1])))
