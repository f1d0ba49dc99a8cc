"""From a recorded program to a baked store: a daemon has compiled all that the program asks for before it
starts, also each configuration of its autotuned kernels."""

import gzip
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import python_found

python_found.require("grpc", "triton")
import triton_found  # noqa: E402, F401

# isort: split
import cubind  # noqa: E402
import running  # noqa: E402
import triton_replaying as replaying  # noqa: E402
import triton_stub as stub  # noqa: E402
from cubind.triton import _recording, _single  # noqa: E402
from cubind.triton._recording import Recorder, read  # noqa: E402

replaying.require()

RECORDED = """
import triton_served_program as program, triton_stub as stub
stub.start()
program.run()
"""


def spec():
    stub.start()
    return replaying.spec()


class File(unittest.TestCase):
    def setUp(self):
        self.path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "record")

    def test_it_gives_back_what_was_added_once_by_any_process(self):
        found = spec()
        for _ in range(2):
            recorder = Recorder(self.path)
            recorder.add(found, 0)
            recorder.add(found, 0)
        (entry,) = read(self.path)
        self.assertEqual(entry.spec, found)
        self.assertEqual(entry.device["facts"]["cc_major"], 9)
        self.assertEqual(len(gzip.decompress(self.path.read_bytes()).splitlines()), 2)

    def test_another_file_and_one_that_was_cut_are_refused(self):
        Recorder(self.path).add(spec(), 0)
        whole = self.path.read_bytes()
        for content in (b"text", whole[:-20], gzip.compress(b"{}"), gzip.compress(b'{"format": "x"}')):
            self.path.write_bytes(content)
            with self.assertRaisesRegex(
                cubind.InvalidArgumentError, "is not a file of python -m cubind.triton"
            ):
                list(read(self.path))

    def test_an_empty_file_has_no_kernels(self):
        Recorder(self.path)
        self.assertEqual(list(read(self.path)), [])


class Singles(unittest.TestCase):
    def test_each_configuration_is_a_kernel_of_its_own(self):
        found = spec()
        singles = list(_single.singles_of(found))
        self.assertEqual(len({one.name for one in singles}), 2)
        for one in singles:
            self.assertEqual(list(_single.singles_of(one)), [one])
            self.assertEqual([*json.loads(one.json)["arguments"]], ["a0", "a1", "a2", "a3"])


class Baked(unittest.TestCase):
    def setUp(self):
        stub.start()
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.program = pathlib.Path(folder, "program.py")
        self.program.write_text(RECORDED)
        self.file = pathlib.Path(folder, "kernels")

    def command(self, *arguments, **environment):
        return running.run_python_for_both(["-m", "cubind.triton", *arguments], **environment)

    def check_baked(self, kernels):
        """After a bake of the file a fresh process compiles nothing."""
        with replaying.Replaying() as daemon:
            baked = self.command("bake", self.file, CUBIND_ADDRESS=daemon.address)
            self.assertIn(f"{kernels} kernels can be served by unix://", baked.stdout)
            out = running.run_python_for_both([replaying.PROGRAM, daemon.address])
        told = json.loads(out.stdout.splitlines()[-1])
        self.assertEqual(told["compiled"], [], told["report"])
        self.assertEqual({*told["found"]}, {"add", "total", "scale"})

    def test_a_fresh_process_compiles_nothing_after_a_bake(self):
        # Without a daemon: Triton compiles and measures all.
        self.command(
            "record", "-o", self.file, self.program, CUBIND_EMBEDDED="0", CUBIND_ADDRESS="unix:///none"
        )
        names = [entry.spec.entry for entry in _recording.read(self.file)]
        # Two autotuned calls, and their configurations as they were compiled.
        self.assertEqual(sorted(names), ["add"] * 2 + ["scale"] * 6 + ["total"])
        self.check_baked(7)

    def test_a_machine_without_a_gpu_records_for_one(self):
        self.program.write_text("import triton_served_program as program\nprogram.run()")
        environment = {"CUBIND_EMBEDDED": "0", "CUBIND_ADDRESS": "unix:///none"}
        command = ["record", "--target", "sm_90", "-o", self.file, self.program]
        running.run_python_for_both(["-m", "cubind.triton", *command], False, **environment)
        names = [entry.spec.entry for entry in _recording.read(self.file)]
        self.assertEqual(sorted(names), ["add"] * 2 + ["scale"] * 4 + ["total"])
        self.check_baked(7)

    def test_a_module_is_run_with_options_of_its_own(self):
        module = ("-m", "timeit", "-n", "1", "-r", "1")
        ran = self.command("record", "--target", "sm_90", "-o", self.file, *module)
        self.assertIn("1 loop, best of 1", ran.stdout)

    def refused(self, text, *options):
        """What is said of a program that cannot be recorded here."""
        self.program.write_text(text)
        command = ["-m", "cubind.triton", "record", *options, "-o", self.file, self.program]
        environment = {**running.WITHOUT_DRIVER, "CUBIND_EMBEDDED": "0", "CUBIND_ADDRESS": "unix:///none"}
        ended = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 1, ended.stderr)
        return ended.stderr

    def test_what_cannot_be_recorded_without_a_gpu_is_said_and_leaves_no_empty_file(self):
        reads = "import torch\nprint(int(torch.ones(3, device='cuda').sum()))"
        for text, options, told in (
            ("import triton_served_program as program\nprogram.run()", (), "Triton finds no GPU here"),
            ("", ("--target", "sm_1"), 'target: "sm_1" is none of sm_75,'),
            (reads, ("--target", "sm_90"), "the program cannot go on without a GPU"),
        ):
            with self.subTest(told):
                self.assertIn(told, self.refused(text, *options))
                self.assertFalse(self.file.exists())


if __name__ == "__main__":
    unittest.main()
