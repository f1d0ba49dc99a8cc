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
from cubind import programs

# Prints a line when it is connected, and stays until its standard input ends.
USER = """
import sys, cubind
client = cubind.connect(*sys.argv[1:], timeout=60)
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
        for name in ("CUBIND_ADDRESS", "CUBIND_EMBEDDED"):
            self.environment.pop(name, None)
        (self.folder / "run").mkdir()

    def start(self, *address):
        process = subprocess.Popen(
            [sys.executable, "-c", USER, *address],
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

    def error_of(self, **environment):
        """What connect() says when it fails."""
        with (
            mock.patch.dict(os.environ, {**self.environment, **environment}, clear=True),
            self.assertRaises(cubind.UnavailableError) as caught,
        ):
            cubind.connect()
        return str(caught.exception)

    def test_two_processes_share_one_and_nothing_remains_after_the_last(self):
        first, second = self.start(), self.start("embedded")
        self.assertTrue(first.stdout.readline().strip())
        self.assertTrue(second.stdout.readline().strip())
        self.assertEqual(len(self.daemons()), 1)
        first.send_signal(signal.SIGKILL)
        first.wait(running.PATIENCE)
        out, _ = second.communicate("", timeout=running.PATIENCE)
        self.assertEqual(out.strip(), "still there")
        self.assertTrue(running.eventually(lambda: not self.daemons()))
        self.assertFalse((self.folder / "run/cubind/embedded/cubind.sock").exists())

    def test_a_tune_may_follow_at_once(self):
        # Without a GPU it is refused, but not before the agent has said why it has none.
        out = running.run_python(
            "import cubind\n"
            "try: cubind.connect().tune([{'kernel': 'softmax_forward', 'N': 1, 'D': 1, 'T': 'f32'}])\n"
            "except cubind.FailedPreconditionError as error: print(error)",
            fake_driver=False,
            **self.environment,
        )
        self.assertRegex(out, "no agent offers a GPU: .*; name a device class")

    def test_a_child_forked_while_the_daemon_starts_holds_up_no_other_process(self):
        out = running.run_python(
            "import os, subprocess, sys, time\n"
            "from cubind import embedded\n"
            "start = embedded.EmbeddedDaemon._start\n"
            "def forking(*given):\n"
            "    global child\n"
            "    child = os.fork()\n"
            "    if not child: time.sleep(60); os._exit(0)\n"
            "    start(*given)\n"
            "embedded.EmbeddedDaemon._start = forking\n"
            "daemon = embedded.EmbeddedDaemon()\n"
            'other = \'import cubind; cubind.connect("embedded"); print("connected")\'\n'
            "subprocess.run([sys.executable, '-c', other], timeout=20, check=True)\n"
            "os.kill(child, 9)",
            **self.environment,
        )
        self.assertEqual(out.strip(), "connected")

    def test_a_start_that_is_interrupted_leaves_no_daemon(self):
        out = running.run_python(
            "from cubind import embedded\n"
            "listens, looks = embedded.listens, []\n"
            "def interrupted(path):\n"
            "    looks.append(path)\n"
            "    if len(looks) > 1: raise KeyboardInterrupt\n"
            "    return listens(path)\n"
            "embedded.listens = interrupted\n"
            "try: embedded.EmbeddedDaemon()\n"
            "except KeyboardInterrupt: print('interrupted')",
            **self.environment,
        )
        self.assertEqual(out.strip(), "interrupted")
        self.assertEqual(self.daemons(), [])

    def test_a_store_that_an_ending_daemon_holds_is_waited_for(self):
        first = self.start()
        self.assertTrue(first.stdout.readline().strip())
        (self.folder / "other").mkdir()
        self.environment["XDG_RUNTIME_DIR"] = str(self.folder / "other")
        second = self.start("embedded")
        log = self.folder / "other/cubind/embedded/cubind.log"
        self.assertTrue(running.eventually(lambda: log.exists() and "has it open" in log.read_text()))
        first.kill()
        self.assertTrue(second.stdout.readline().strip())

    def test_a_store_that_a_daemon_of_another_runtime_folder_has_names_its_address(self):
        first = self.start()
        self.assertTrue(first.stdout.readline().strip())
        (self.folder / "other").mkdir()
        error = self.error_of(XDG_RUNTIME_DIR=str(self.folder / "other"))
        address = f"unix://{self.folder}/run/cubind/embedded/cubind.sock"
        self.assertRegex(error, rf"another cubind \(pid \d+, at {address}\) has it open: connect to that one")
        self.assertIn(f"CUBIND_ADDRESS={address}", error)

    def test_a_daemon_that_does_not_start_says_why_and_what_to_do(self):
        (self.folder / "cache/cubind/embedded/store.db").mkdir(parents=True)
        error = self.error_of()
        for part in (
            f"{self.folder}/run/cubind/embedded/cubind.log: the private daemon ended while it started: ",
            "store.db",
            "XDG_CACHE_HOME",
            f"no other daemon was found ({self.folder}/run/cubind/cubind.sock:",
        ):
            self.assertIn(part, error)

    def test_programs_find_triton_where_this_process_uses_it(self):
        with mock.patch.dict(os.environ), mock.patch.dict(sys.modules):
            os.environ.pop("CUBIND_TRITON_PYTHON", None)
            sys.modules.pop("cubind.triton", None)
            self.assertNotIn("CUBIND_TRITON_PYTHON", programs.environment())
            sys.modules["cubind.triton"] = cubind
            self.assertEqual(programs.environment()["CUBIND_TRITON_PYTHON"], sys.executable)
            os.environ["CUBIND_TRITON_PYTHON"] = "/another/python"
            self.assertEqual(programs.environment()["CUBIND_TRITON_PYTHON"], "/another/python")

    def test_the_package_is_run_as_cubindctl(self):
        command = [sys.executable, "-m", "cubind", "--version"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        self.assertRegex(done.stdout, "^cubindctl [0-9]")

    def test_a_package_without_programs_says_so(self):
        error = self.error_of(CUBIND_PROGRAMS="", PATH=str(self.folder))
        self.assertRegex(error, "^cubind: the private daemon has no program, it is not in .*CUBIND_PROGRAMS")

    def test_a_user_without_a_home_is_told_to_name_a_folder(self):
        with mock.patch("pathlib.Path.home", side_effect=RuntimeError):
            self.assertIn("the user has no home; XDG_RUNTIME_DIR", self.error_of(XDG_CACHE_HOME=""))

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
