"""The embedded daemon: shared by processes, there as long as one of them needs it, gone afterwards."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import cubind
import running

# Prints a line when it is connected, and stays until its standard input ends.
USER = """
import sys, cubind
client = cubind.connect("embedded", timeout=60)
print(client.status()["version"], flush=True)
sys.stdin.read()
client.status()
print("still there", flush=True)
"""


class Embedded(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="cubind-e-")))
        self.environment = {
            **running.WITHOUT_DRIVER, "XDG_RUNTIME_DIR": str(self.folder / "run"), "XDG_CACHE_HOME": str(self.folder / "cache")
        }  # fmt: skip
        (self.folder / "run").mkdir()

    def start(self):
        process = subprocess.Popen(
            [sys.executable, "-c", USER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self.environment,
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        return process

    def daemons(self):
        found = subprocess.run(
            ["pgrep", "-f", f"cubind --socket {self.folder}"], capture_output=True, text=True
        )
        return found.stdout.split()

    def test_two_processes_share_one_and_nothing_remains_after_the_last(self):
        first, second = self.start(), self.start()
        self.assertTrue(first.stdout.readline().strip())
        self.assertTrue(second.stdout.readline().strip())
        self.assertEqual(len(self.daemons()), 1)
        first.send_signal(signal.SIGKILL)
        first.wait(running.PATIENCE)
        out, _ = second.communicate("", timeout=running.PATIENCE)
        self.assertEqual(out.strip(), "still there")
        self.assertTrue(running.eventually(lambda: not self.daemons()))
        self.assertFalse((self.folder / "run/cubind/embedded/cubind.sock").exists())

    def test_a_daemon_that_does_not_start_says_why(self):
        (self.folder / "cache/cubind/embedded/store.db").mkdir(parents=True)
        process = self.start()
        process.stdin.close()
        process.wait(running.PATIENCE)
        self.assertNotEqual(process.returncode, 0)

    def test_folders_that_cannot_be_written_are_an_error_of_cubind(self):
        (self.folder / "file").write_text("")
        for name in ("XDG_RUNTIME_DIR", "XDG_CACHE_HOME"):
            environment = {**self.environment, name: str(self.folder / "file")}
            with (
                self.subTest(name),
                mock.patch.dict(os.environ, environment),
                self.assertRaisesRegex(cubind.UnavailableError, f"{self.folder}/file.*{name}"),
            ):
                cubind.connect("embedded")


if __name__ == "__main__":
    unittest.main()
