"""./dev wheel, and what it makes in a virtual environment that has nothing else: programs, the embedded
daemon, the error where no GPU is, answers of a daemon that replays a recorded table. Downloads grpcio and
protobuf."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import venv

SOURCE = pathlib.Path(__file__).resolve().parents[3]
REPLAY = SOURCE / "tests/golden/replay/rmsnorm_h200.json"

EMBEDDED = """
import cubind
client = cubind.connect("embedded", timeout=60)
assert "rmsnorm_forward" in [kernel["name"] for kernel in client.kernels()]
try:
    client.get("rmsnorm_forward", N=4096, D=4096, T="bf16")
except cubind.FailedPreconditionError as error:
    assert "name the GPU that the answer is for" in str(error), error
else:
    raise SystemExit("there is a GPU here: this test is for machines without")
"""
REPLAYED = """
import cubind
client = cubind.connect(timeout=60)
(device,) = [device["label"] for device in client.status()["devices"] if device["offered"]]
(result,) = client.tune([{"kernel": "rmsnorm_forward", "N": 4096, "D": 4096, "T": "bf16"}], progress=False)
answer = client.get("rmsnorm_forward", N=4096, D=4096, T="bf16", device=device)
assert answer.evidence == "replayed" and answer.configuration == result.configuration, (answer, result)
assert client.get("rmsnorm_forward", N=3000, D=4096, T="bf16", device=device).match == "bucket"
assert client.calls == 1
"""


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        subprocess.run([SOURCE / "dev", "wheel"], check=True)
        (cls.wheel,) = (SOURCE / "dist").glob("cubind-*.whl")
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="cubind-w-")))
        venv.create(cls.folder / "venv", with_pip=True)
        cls.bin = cls.folder / "venv/bin"
        subprocess.run([cls.bin / "pip", "install", "--quiet", cls.wheel], check=True)
        (cls.folder / "run").mkdir()
        places = {"XDG_RUNTIME_DIR": str(cls.folder / "run"), "XDG_CACHE_HOME": str(cls.folder / "cache")}
        cls.environment = {**os.environ, **places}

    def run_python(self, code):
        command = [self.bin / "python", "-c", code]
        result = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_the_tag_names_no_newer_glibc_than_ubuntu_22_04_has(self):
        tag = self.wheel.stem.split("-")
        self.assertEqual(tag[2:4], ["cp311", "abi3"])
        self.assertLessEqual(int(tag[4].split("_")[2]), 35)

    def test_the_embedded_daemon_and_the_error_without_a_gpu(self):
        self.run_python(EMBEDDED)
        until = time.monotonic() + 60
        while (self.folder / "run/cubind/embedded/cubind.sock").exists():
            self.assertLess(time.monotonic(), until, "the embedded daemon is still there")
            time.sleep(0.1)

    def test_the_lines_of_the_readme_run_as_they_are_written(self):
        """As documentation_test.py runs them: torch is a stand-in and the driver the fake one, the rest is
        the wheel's."""
        subprocess.run([SOURCE / "dev", "build", "release", "fake_driver"], check=True)
        (programs,) = (self.folder / "venv").glob("lib/python*/site-packages/cubind/_programs/bin")
        environment = {
            **self.environment,
            "CUBIND_CUDA_HOME": str(SOURCE / ".deps/cuda"),
            "CUBIND_PROGRAMS": str(programs),
            "CUBIND_TINY_FILES": "",
            "LD_LIBRARY_PATH": str(SOURCE / "build/release/tests/fakes/driver"),
        }
        command = [
            self.bin / "python",
            "-B",
            SOURCE / "tests/service/python/documentation_test.py",
            "Examples",
        ]
        subprocess.run(command, check=True, env=environment, timeout=600)

    def test_a_daemon_of_the_wheel_answers_with_each_protobuf(self):
        environment = {**self.environment, "CUBIND_CUDA_HOME": str(SOURCE / ".deps/cuda")}
        daemon = subprocess.Popen([self.bin / "cubind", "--replay", REPLAY], env=environment)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.terminate)
        subprocess.run([self.bin / "cubindctl", "health", "--wait", "60"], check=True, env=environment)
        for major in (5, 6, 7):  # those that the wheel's metadata allows
            with self.subTest(protobuf=major):
                install = [self.bin / "pip", "install", "--quiet", f"protobuf=={major}.*"]
                subprocess.run(install, check=True)
                self.run_python(f"import google.protobuf as p; assert p.__version__[:2] == '{major}.'")
                self.run_python(REPLAYED)


if __name__ == "__main__":
    sys.exit(unittest.main())
