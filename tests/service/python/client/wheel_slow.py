"""./dev wheel, and what it makes in virtual environments that have nothing else: programs, the embedded
daemon, the demo, the extras, answers of a daemon that replays a recorded table, the error without a GPU.
Downloads grpcio, protobuf and NVIDIA's wheels."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import venv

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[3]
CHECK = SOURCE / "dev.d/check_wheel.py"
REPLAY = SOURCE / "tests/golden/replay/rmsnorm.json"

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

# A kernel with headers of each wheel of an extra: the runtime's, crt/ and CCCL.
SPEC = """{
  "name": "limit",
  "source": "limit.cu",
  "problem": {"dims": {"N": "elements"}, "types": {"T": ["f32"]}, "bucket": {"N": "pow2"}},
  "tunables": {"THREADS": [128]},
  "default": [{"THREADS": 128}],
  "arguments": {"y": {"buffer": "T", "shape": ["N"], "role": "out"}, "N": {"scalar": "i64", "expr": "N"}},
  "launches": [{"entry": "limit<{THREADS}>", "arguments": ["y", "N"], "grid": ["cdiv(N, THREADS)"],
                "block": ["THREADS"]}],
  "reference": "default",
  "tolerance": {"f32": {"rtol": 1e-6, "atol": 1e-7}}
}
"""
KERNEL = """
#include <cuda_fp16.h>
#include <mma.h>

#include <cuda/std/limits>

template <int THREADS>
__global__ void limit(float* y, long long N) {
  const long long i = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;
  if (i < N) y[i] = cuda::std::numeric_limits<float>::max();
}
"""
# Other CPythons; a version manager may have a name on PATH that runs nothing.
PYTHONS = [
    name
    for name in (f"python3.{minor}" for minor in (10, 12, 13, 14))
    if shutil.which(name) and subprocess.run([name, "--version"], capture_output=True).returncode == 0
]


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
        folders = {"XDG_RUNTIME_DIR": str(cls.folder / "run"), "XDG_CACHE_HOME": str(cls.folder / "cache")}
        cls.environment = {**os.environ, **folders}

    def run_python(self, code):
        command = [self.bin / "python", "-c", code]
        result = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, 0, result.stderr)

    def check(self, wheel):
        return subprocess.run([sys.executable, CHECK, wheel], capture_output=True, text=True)

    def test_the_tag_is_what_the_binaries_need(self):
        self.assertEqual(self.wheel.stem.split("-")[2:], ["cp310", "abi3", "manylinux_2_34_x86_64"])
        self.assertEqual(self.check(self.wheel).returncode, 0)

    def test_a_wheel_that_promises_more_is_refused(self):
        for tags, fault in (
            ("cp310-abi3-manylinux_2_28_x86_64", "auditwheel says manylinux_2_34_x86_64, the name"),
            ("cp32-abi3-manylinux_2_34_x86_64", "_core.abi3.so needs Py"),
        ):
            with self.subTest(tags):
                other = self.folder / f"cubind-0.0.0-{tags}.whl"
                shutil.copy(self.wheel, other)
                result = self.check(other)
                self.assertEqual(result.returncode, 1)
                self.assertIn(fault, result.stderr)

    def test_programs_that_take_libstdcxx_from_the_environment_are_refused(self):
        unpacked = self.folder / "unpacked"
        subprocess.run([sys.executable, "-m", "wheel", "unpack", "-d", unpacked, self.wheel], check=True)
        (programs,) = unpacked.glob("cubind-*/cubind/_programs/bin")
        command = ["patchelf", "--set-rpath", "$ORIGIN/../lib", programs / "cubind"]  # DT_RUNPATH
        subprocess.run(command, check=True)
        subprocess.run(
            [sys.executable, "-m", "wheel", "pack", "-d", unpacked, programs.parents[2]], check=True
        )
        result = self.check(next(unpacked.glob("*.whl")))
        self.assertEqual(result.returncode, 1)
        self.assertIn("cubind does not start with another libstdc++", result.stderr)

    def test_daemon_and_client_run_beside_a_broken_libstdcxx(self):
        broken = self.folder / "broken"
        broken.mkdir()
        (broken / "libstdc++.so.6").write_text("no library")
        environment = {**self.environment, "LD_LIBRARY_PATH": str(broken)}
        environment["CUBIND_CUDA_HOME"] = str(SOURCE / ".deps/cuda")
        daemon = subprocess.Popen([self.bin / "cubind", "--replay", REPLAY], env=environment)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.terminate)
        for arguments in (
            ["health", "--wait", "60"],
            ["tune", "rmsnorm_forward", "--problem", "N=4096,D=4096,T=bf16", "--max-trials", "4"],
            ["get", "rmsnorm_forward", "--problem", "N=4096,D=4096,T=bf16"],
        ):
            subprocess.run([self.bin / "cubindctl", *arguments], check=True, env=environment, timeout=300)

    @unittest.skipUnless(PYTHONS, "no CPython 3.10, 3.12, 3.13 or 3.14 is on PATH")
    def test_the_demo_runs_on_every_other_cpython(self):
        environment = {**self.environment, "CUBIND_CUDA_HOME": str(SOURCE / ".deps/cuda")}
        for name in PYTHONS:
            with self.subTest(name):
                folder = self.folder / name
                subprocess.run([name, "-m", "venv", folder], check=True)
                subprocess.run([folder / "bin/pip", "install", "--quiet", self.wheel], check=True)
                command = [folder / "bin/python", "-m", "cubind.demo", "--replay"]
                result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertIn("The daemon has stopped. Done.", result.stdout)

    def test_the_extras_bring_nvrtc_and_every_header(self):
        kernels = self.folder / "kernels"
        kernels.mkdir()
        (kernels / "limit.json").write_text(SPEC)
        (kernels / "limit.cu").write_text(KERNEL)
        environment = {**self.environment, "HOME": str(self.folder), "PATH": "/usr/bin:/bin"}
        for extra in ("cuda12", "cuda13"):
            environment["VIRTUAL_ENV"] = str(self.folder / extra)
            with self.subTest(extra):
                venv.create(self.folder / extra, with_pip=True)
                binaries = self.folder / extra / "bin"
                subprocess.run([binaries / "pip", "install", "--quiet", f"{self.wheel}[{extra}]"], check=True)
                address = f"unix://{self.folder}/{extra}.sock"
                daemon = subprocess.Popen(
                    [
                        *(binaries / "cubind", "--socket", self.folder / f"{extra}.sock"),
                        *("--db", self.folder / f"{extra}.db", "--kernels", kernels),
                    ],
                    env=environment,
                )
                self.addCleanup(daemon.wait)
                self.addCleanup(daemon.terminate)
                ctl = [binaries / "cubindctl", "--address", address]
                subprocess.run([*ctl, "health", "--wait", "60"], check=True)
                check = [*ctl, "kernels", "check", kernels / "limit.json", "--arch", "sm_90"]
                result = subprocess.run(check, capture_output=True, text=True, timeout=300)
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

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
            "PYTHONPATH": f"{HERE}:{HERE.parent / 'support'}",
        }
        command = [self.bin / "python", "-B", "-m", "unittest", "documentation_test.Examples"]
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
