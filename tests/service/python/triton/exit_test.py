"""How a process ends under python -m cubind.triton."""

import os
import pathlib
import signal
import subprocess
import sys
import threading
import unittest

import python_found

python_found.require("grpc", "triton")
import running  # noqa: E402
from fake_daemon import FakeDaemon, chosen, tuning  # noqa: E402

PROGRAM = pathlib.Path(__file__).with_name("triton_exiting_program.py")
AT_ONCE = 10.0  # seconds: a busy machine may need them


class Case(unittest.TestCase):
    def answer(self, request):
        """A reply to a question for the kernel."""
        raise NotImplementedError

    def setUp(self):
        self.daemon = self.enterContext(FakeDaemon(self.answer))

    def start(self, phase):
        process = subprocess.Popen(
            [sys.executable, "-B", "-m", "cubind.triton", PROGRAM, phase],
            env={**os.environ, "CUBIND_ADDRESS": self.daemon.address, "CUBIND_REPORT": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process


class Exit(Case):
    """Triton's compiler, in C++, brings the process down if its thread is stopped."""

    answered = False

    def answer(self, request):
        answered, self.answered = self.answered, True
        return chosen(1) if answered else tuning()

    def run_phase(self, phase):
        """The lines that it prints."""
        out, err = self.start(phase).communicate(timeout=running.PATIENCE)
        self.assertIn("cubind.triton: triton_stub.scale: asked 1", err)
        return out.splitlines()

    def test_a_compile_under_way_ends_first(self):
        self.assertEqual(self.run_phase("compiles"), ["compile_ahead begins", "compile_ahead ends"])

    def test_a_definition_under_way_ends_with_the_configuration_that_is_compiled(self):
        out = self.run_phase("defines")
        ended = out.count("canonical_module ends")
        self.assertEqual(out, ["canonical_module begins", "canonical_module ends"] * ended)
        self.assertLess(ended, 7)


class Interrupted(Case):
    """While a call waits for the tuning of its kernel."""

    def setUp(self):
        super().setUp()
        self.waits, self.ends = threading.Event(), threading.Event()
        self.addCleanup(self.ends.set)  # before the daemon ends

    def answer(self, request):
        if not request.on_miss:
            return tuning()
        self.waits.set()
        self.ends.wait(running.PATIENCE)
        return chosen(1)

    def test_the_program_ends(self):
        process = self.start("waits")
        self.assertTrue(self.waits.wait(running.PATIENCE))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=AT_ONCE)
        self.assertEqual(out, "the call ends with KeyboardInterrupt\n", err)
        self.assertIn("asked 1, served 0, tuning 0", err)
        self.assertEqual(process.returncode, -signal.SIGINT, err)
