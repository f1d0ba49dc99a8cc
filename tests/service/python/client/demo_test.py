"""python -m cubind.demo without a GPU: what it prints, that it leaves nothing behind, and what it says
if there is no NVRTC."""

import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import running
from cubind import demo


class Demo(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="cubind-t-")))
        (self.folder / "tmp").mkdir()
        self.environment = {
            **running.WITHOUT_DRIVER,
            "TMPDIR": str(self.folder / "tmp"),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "PYTHONUNBUFFERED": "1",
        }

    def start(self, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "cubind.demo", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
        )
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process

    def start_tuning(self, *arguments):
        """A demo that tunes, and what it has printed before."""
        process, printed = self.start(*arguments), ""
        while "Tuning" not in printed:
            line = process.stdout.readline()
            self.assertTrue(line, "it has ended")
            printed += line
        return process, printed

    def stop(self, process):
        process.terminate()
        process.wait(running.PATIENCE)
        self.assert_nothing_is_left()

    def run_demo(self, *arguments):
        process = self.start(*arguments)
        out, err = process.communicate(timeout=4 * running.PATIENCE)
        self.assert_nothing_is_left(*re.findall(r"The report is (\S+\.html)\.", out))
        return process.returncode, out, err

    def assert_nothing_is_left(self, *but):
        found = ["pgrep", "-f", str(self.folder / "tmp")]
        self.assertTrue(running.eventually(lambda: subprocess.run(found, capture_output=True).stdout == b""))
        self.assertEqual([str(path) for path in (self.folder / "tmp").iterdir()], [*but])

    def without_nvrtc(self):
        """Programs outside of the source tree, whose .deps they would search, and no Python with wheels."""
        if any(pathlib.Path("/usr/local/cuda").glob("**/libnvrtc.so.*")):
            self.skipTest("/usr/local/cuda has an NVRTC")
        copies = self.folder / "programs/bin"
        copies.mkdir(parents=True)
        for name in ("cubind", "cubind-agent", "cubind-worker"):
            shutil.copy2(running.PROGRAMS / name, copies)
        shutil.copytree(running.SOURCE / "variants", self.folder / "programs/variants")
        shutil.copytree(running.SOURCE / "schemas", self.folder / "programs/schemas")
        for name in ("CUBIND_CUDA_HOME", "CUDA_HOME"):
            self.environment.pop(name, None)
        self.environment |= {
            "CUBIND_PROGRAMS": str(copies),
            "VIRTUAL_ENV": str(self.folder),
            "HOME": str(self.folder),
            "PATH": "/sbin",
        }

    def test_every_line_says_that_it_is_replayed(self):
        status, out, err = self.run_demo()
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(
            [line for line in out.splitlines() if not line.startswith(("replayed:", "not replayed:"))], []
        )
        self.assertRegex(out, r"N=1024 D=8192 T=bf16: \d+\.\d+ us, 1\.\d+ times as fast as the default")
        self.assertRegex(out, r"N=1000 D=8192 T=bf16: bucket, replayed, \d+\.\d+ us, cubin of \d+ bytes")
        self.assertRegex(out, r"not replayed:   N=16384 D=4096 T=bf16: \S+, shipped, \d+\.\d+ us, cubin of")
        self.assertRegex(
            out,
            r"The report is \S+\.html\. .*\n.*  cubind --replay .* --web 7680 & .*\n"
            r".*  cubindctl tune rmsnorm_forward .*\n.*  cubindctl explain rmsnorm_forward .*\n$",
        )
        (gpu,) = [device["facts"]["name"] for device in json.loads(demo._TABLE.read_text())["devices"]]
        self.assertIn(f", which plays the measurements of an {gpu}.\n", out)
        (shown,) = re.findall(
            r"```\n(replayed: .*?)```", (running.SOURCE / "README.md").read_text(), re.DOTALL
        )
        self.assertIn(shown, out)

    def test_every_line_of_the_demo_of_the_package_says_so_too(self):
        command = ["bash", running.SOURCE / "client/demo/demo.sh", running.PROGRAMS]
        environment = {**self.environment, "CUBIND_DEMO_REPLAY": "1"}
        result = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=4 * running.PATIENCE
        )
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(
            [line for line in result.stdout.splitlines() if not line.startswith("replayed:")], []
        )
        (page,) = (self.folder / "tmp").iterdir()
        self.assertIn(f"The report is {page}.", result.stdout)
        self.assertEqual(page.suffix, ".html")
        self.assertNotIn("/../", result.stdout)

    def test_the_table_that_it_plays_is_named_for_a_daemon(self):
        code, out, _ = self.run_demo("--table")
        self.assertEqual(
            (code, json.loads(pathlib.Path(out.strip()).read_text())["format"]), (0, "cubind-table")
        )

    def test_it_can_be_interrupted(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                process, _ = self.start_tuning()
                process.send_signal(number)
                out, err = process.communicate(timeout=running.PATIENCE)
                self.assertEqual((process.returncode, err), (128 + number, ""))
                self.assertNotIn("Done", out)
                self.assert_nothing_is_left()

    def test_a_daemon_of_a_demo_that_was_killed_ends(self):
        process, _ = self.start_tuning()
        process.kill()
        found = ["pgrep", "-f", str(self.folder / "tmp")]
        self.assertTrue(running.eventually(lambda: subprocess.run(found, capture_output=True).stdout == b""))

    def test_without_nvrtc_it_says_how_to_install_it(self):
        self.without_nvrtc()
        status, _, err = self.run_demo()
        self.assertEqual(status, 1)
        self.assertRegex(err, "demo: NVRTC, .* `pip install 'nvidia-cuda-nvrtc>=13,<14' ")

    def test_the_example_program_understands_what_it_is_told_on_a_gpu(self):
        """Without a GPU or a daemon it fails, but not because of its options."""
        nobody = f"unix://{self.folder}/nobody.sock"
        code = (
            "from types import SimpleNamespace as Client; from cubind import demo\n"
            f"demo._check_on_gpu(Client(address='{nobody}'), [{{'N': 8, 'D': 16, 'T': 'bf16'}}], demo._Output(False))"
        )
        result = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=self.environment
        )
        self.assertIn("DemoError: rmsnorm-example failed", result.stderr)
        self.assertIn("rmsnorm-example: ", result.stderr)
        self.assertNotIn("usage", result.stdout + result.stderr)
