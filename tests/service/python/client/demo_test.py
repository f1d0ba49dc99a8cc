"""python -m cubind.demo without a GPU: what it prints, that it leaves nothing behind, and what it does
if there is no NVRTC. pip is a stand-in that links the wheels of ./dev deps."""

import json
import os
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

PACKAGES = running.SOURCE / ".deps/venv/lib" / f"python3.{sys.version_info.minor}" / "site-packages"

PIP = """
import os, pathlib, sys
arguments = sys.argv[1:]
target = pathlib.Path(arguments[arguments.index("--target") + 1])
pathlib.Path(os.environ["PIP_LOG"]).write_text(" ".join(arguments))
if "PIP_FAILS" in os.environ:
    sys.exit(3)
target.mkdir(parents=True)
(target / "nvidia").symlink_to(os.environ["PIP_BRINGS"])
"""


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
        self.assert_nothing_is_left()
        return process.returncode, out, err

    def assert_nothing_is_left(self):
        found = ["pgrep", "-f", str(self.folder / "tmp")]
        self.assertTrue(running.eventually(lambda: subprocess.run(found, capture_output=True).stdout == b""))
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])

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
        (self.folder / "pip").mkdir()
        (self.folder / "pip/__init__.py").touch()
        (self.folder / "pip/__main__.py").write_text(PIP)
        for name in ("CUBIND_CUDA_HOME", "CUDA_HOME"):
            self.environment.pop(name, None)
        self.environment |= {
            "CUBIND_PROGRAMS": str(copies),
            "VIRTUAL_ENV": str(self.folder),
            "HOME": str(self.folder),
            "PATH": "/sbin",
            "PYTHONPATH": f"{self.folder}{os.pathsep}{os.environ['PYTHONPATH']}",
            "PIP_LOG": str(self.folder / "pip.log"),
            "PIP_BRINGS": str(PACKAGES / "nvidia"),
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
        self.assertTrue(out.endswith("replayed: The daemon has stopped. Done.\n"))
        (gpu,) = [device["facts"]["name"] for device in json.loads(demo._TABLE.read_text())["devices"]]
        self.assertIn(f", which plays the measurements of an {gpu}.\n", out)
        (shown,) = re.findall(
            r"```\n(replayed: .*?)```", (running.SOURCE / "README.md").read_text(), re.DOTALL
        )
        self.assertIn(shown, out)

    def small_table(self):
        """Of one problem."""
        table = json.loads(demo._TABLE.read_text())
        table["trials"] = [one for one in table["trials"] if one["problem"]["dims"]["N"] == 16384]
        lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in table.pop("trials"))
        path = self.folder / "table.json"
        path.write_text(f'{json.dumps(table)[:-1]}, "trials": [\n{lines}\n]}}')
        return str(path)

    def test_every_line_of_the_demo_of_the_package_says_so_too(self):
        command = ["bash", running.SOURCE / "client/demo/demo.sh", running.PROGRAMS]
        environment = {**self.environment, "CUBIND_DEMO_REPLAY": "1", "CUBIND_DEMO_TABLE": self.small_table()}
        result = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=4 * running.PATIENCE
        )
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        self.assertEqual(
            [line for line in lines if not re.match(r"(not )?replayed:( (?!replayed)|$)", line)], []
        )
        self.assertRegex(result.stdout, r"not replayed:   evidence +shipped: nvidia-h200")
        self.assertEqual([file.suffix for file in (self.folder / "tmp").iterdir()], [".html"])

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

    def test_without_nvrtc_it_downloads_one_for_itself_and_keeps_it(self):
        self.without_nvrtc()
        process, printed = self.start_tuning()
        self.stop(process)
        self.assertIn(f"pip downloads it to {self.folder}/cache/cubind/demo-cuda-below-14", printed)
        self.assertIn("nvidia-cuda-nvrtc>=13,<14", (self.folder / "pip.log").read_text())
        kept = [path.name for path in (self.folder / "cache/cubind").iterdir()]
        self.assertEqual(kept, ["demo-cuda-below-14"])
        (self.folder / "pip.log").unlink()
        process, printed = self.start_tuning("--no-download")
        self.stop(process)
        self.assertRegex(printed, r"cubind \S+ with .*nvrtc 13\.\d+\. Its device")
        self.assertFalse((self.folder / "pip.log").exists())

    def test_no_download_says_how_to_install_nvrtc(self):
        self.without_nvrtc()
        status, _, err = self.run_demo("--no-download")
        self.assertEqual(status, 1)
        self.assertRegex(err, "demo: NVRTC is missing, .* `pip install 'nvidia-cuda-nvrtc>=13,<14' ")
        self.assertFalse((self.folder / "pip.log").exists())

    def test_a_download_that_fails_leaves_nothing(self):
        self.without_nvrtc()
        self.environment["PIP_FAILS"] = "1"
        status, _, err = self.run_demo()
        self.assertEqual(status, 1)
        self.assertRegex(
            err, r"demo: pip could not install NVRTC \(exit status 3\): install NVRTC with `pip install"
        )
        self.assertEqual(list((self.folder / "cache/cubind").iterdir()), [])

    def test_a_user_without_a_home_is_told_to_name_a_folder(self):
        self.environment.pop("XDG_CACHE_HOME")
        code = (
            "import pathlib, sys; from unittest import mock; from cubind import demo\n"
            "with mock.patch.object(pathlib.Path, 'home', side_effect=RuntimeError): sys.exit(demo.main())"
        )
        result = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=self.environment
        )
        self.assertEqual(result.returncode, 1)
        self.assertEqual(
            result.stderr,
            "demo: there is no folder for NVRTC: the user has no home; XDG_CACHE_HOME names one\n",
        )

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


if __name__ == "__main__":
    unittest.main()
