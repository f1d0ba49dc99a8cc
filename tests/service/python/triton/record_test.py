"""From a recorded program to a baked store: a daemon has compiled all that the program asks for before it
starts, also each configuration of its autotuned kernels."""

import gzip
import json
import os
import pathlib
import resource
import tempfile
import unittest
import unittest.mock
import warnings

import triton_grpc_found  # noqa: F401  first: it looks for a Python with Triton and gRPC

# isort: split
import cubind.triton
import running
import triton_replaying as replaying
import triton_stub as stub
from cubind.triton import _recording, _spec
from fake_daemon import FakeDaemon, chosen

replaying.require()

RECORDED = """
import triton_served_program as program, triton_stub as stub
stub.start()
program.run()
"""

WITHOUT_DAEMON = {"CUBIND_EMBEDDED": "0", "CUBIND_ADDRESS": "unix:///none"}


def command(*arguments, **options):
    """What `python -m cubind.triton` ends with."""
    return running.run_python_for_both(["-m", "cubind.triton", *arguments], **options)


def lines_of(path):
    """The kernels of a file of `record`."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def entries_of(path):
    """The functions of its kernels, each kernel once."""
    return sorted({line["name"]: line["entry"] for line in lines_of(path)}.values())


class File(unittest.TestCase):
    def setUp(self):
        stub.start()
        self.enterContext(warnings.catch_warnings(action="ignore"))  # its daemon has no compiled kernels
        self.path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "record")

    def record(self):
        """A program that calls and compiles a kernel twice. Returns what its daemon got, by name."""
        with FakeDaemon(chosen(1)) as daemon, cubind.connect(daemon.address) as client:
            cubind.triton.install(client, record=self.path)
            self.addCleanup(cubind.triton.uninstall)
            for _ in range(2):
                with (
                    tempfile.TemporaryDirectory() as cache,
                    unittest.mock.patch.dict(os.environ, TRITON_CACHE_DIR=cache),
                ):
                    replaying.call(stub.tuned())
            cubind.triton.uninstall()
        return daemon.defined

    def bake(self):
        """The exit code, what is said, and what the daemon gets."""
        with FakeDaemon(chosen(0, "NONE")) as daemon:
            ended = command("bake", self.path, check=False, CUBIND_ADDRESS=daemon.address)
        return ended.returncode, ended.stdout + ended.stderr, daemon.defined

    def test_it_gives_back_what_was_added_once_by_any_process(self):
        defined = self.record()
        once = lines_of(self.path)
        self.assertEqual({line["name"] for line in once}, {*defined})
        self.assertEqual(len(once), len(defined))
        self.assertEqual({line["device"]["facts"]["cc_major"] for line in once}, {9})
        code, said, baked = self.bake()
        self.assertEqual(code, 0, said)
        self.record()
        self.assertEqual(lines_of(self.path), 2 * once)
        self.assertEqual(self.bake()[2], baked)
        for name, ((first, *_), *_) in defined.items():
            self.assertEqual(baked[name][0][0], first)

    def test_each_configuration_is_a_kernel_of_its_own(self):
        self.record()
        _, said, baked = self.bake()
        self.assertIn("2 kernels can be served by unix://", said)
        recorded = {line["name"]: json.loads(line["spec"]) for line in lines_of(self.path)}
        (autotuned,) = (name for name, each in recorded.items() if len(each["configurations"]) == 2)
        singles = [json.loads(parts[0][0].spec_json) for name, parts in baked.items() if name != autotuned]
        self.assertEqual([len(each["configurations"]) for each in singles], [1, 1])
        for each in singles:
            self.assertEqual([*each["arguments"]], ["a0", "a1", "a2", "a3"])

    def test_another_file_and_one_that_was_cut_are_refused(self):
        self.record()
        whole = self.path.read_bytes()
        cut = (whole[:-20], whole[:-20] + whole)  # the second one by a rank that others outlived
        for content in (b"text", *cut, gzip.compress(b"{}"), gzip.compress(b'{"format": "x"}')):
            self.path.write_bytes(content)
            code, said, baked = self.bake()
            self.assertEqual((code, baked), (1, {}))
            self.assertIn("is not a file of python -m cubind.triton record", said)

    def test_what_a_full_disk_does_not_take_is_named_and_spoils_nothing(self):
        def spec(name):
            return _spec.Spec(name, "f", (0,), {}, b"{}", {"f.ttir": os.urandom(4096).hex().encode()})

        limit, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        recorder = _recording.Recorder(self.path, {0: {}})
        recorder.add(spec("first"), 0)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.path.stat().st_size + 100, most))
        with self.assertWarnsRegex(RuntimeWarning, "second and perhaps others are not recorded: .*No space"):
            try:
                recorder.add(spec("second"), 0)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
        recorder.add(spec("third"), 0)
        self.assertEqual([entry.spec.name for entry in _recording.read(self.path)], ["first", "third"])

    def test_a_file_that_is_gone_keeps_no_kernel_from_being_served(self):
        fails = unittest.mock.Mock(side_effect=[None, *[OSError(5, "gone")] * 9])
        says = self.assertWarnsRegex(RuntimeWarning, "perhaps others are not recorded: .*gone")
        with unittest.mock.patch.object(_recording.Recorder, "_append", fails), says:
            self.assertTrue(self.record())

    def test_what_another_version_recorded_is_named(self):
        self.record()
        lines = lines_of(self.path)
        for line in lines:
            line["device"]["facts"]["color"] = 1
        self.path.write_bytes(b"".join(gzip.compress(json.dumps(line).encode() + b"\n") for line in lines))
        code, said, _ = self.bake()
        self.assertEqual(code, 1)
        self.assertEqual(said.count("is not compiled: its GPU is described in another way"), 2)
        self.assertIn("0 kernels can be served", said)

    def test_an_empty_file_has_no_kernels(self):
        self.path.touch()
        code, said, _ = self.bake()
        self.assertEqual(code, 1)
        self.assertIn("has no kernel: the recorded program asked for none", said)


class Baked(unittest.TestCase):
    def setUp(self):
        stub.start()
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.program = pathlib.Path(folder, "program.py")
        self.program.write_text(RECORDED)
        self.file = pathlib.Path(folder, "kernels")

    def check_baked(self, kernels):
        """After a bake of the file a fresh process compiles nothing."""
        with replaying.Replaying() as daemon:
            baked = command("bake", self.file, CUBIND_ADDRESS=daemon.address)
            self.assertIn(f"{kernels} kernels can be served by unix://", baked.stdout)
            out = running.run_python_for_both([replaying.PROGRAM, daemon.address])
        told = json.loads(out.stdout.splitlines()[-1])
        self.assertEqual(told["compiled"], [], told["report"])
        self.assertEqual({*told["found"]}, {"add", "total", "scale"})

    def test_a_kernel_that_the_daemon_refuses_keeps_no_other_from_being_baked(self):
        command("record", "-o", self.file, self.program, **WITHOUT_DAEMON)
        lines = lines_of(self.file)
        lines[0]["spec"] = lines[0]["spec"].replace('"language"', '"dialect"')
        self.file.write_bytes(b"".join(gzip.compress(json.dumps(line).encode() + b"\n") for line in lines))
        with replaying.Replaying() as daemon:
            address = daemon.address
            ended = command("bake", self.file, fake_driver=False, check=False, CUBIND_ADDRESS=address)
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertRegex(ended.stdout, r"^[1-9] kernels can be served")
        self.assertIn(f"{lines[0]['name']} is not compiled: ", ended.stderr)

    def test_an_error_of_the_program_has_its_traceback(self):
        told = self.refused("open('/no/such/data')")
        self.assertIn("Traceback (most recent call last)", told)
        self.assertIn("FileNotFoundError", told)

    def test_a_fresh_process_compiles_nothing_after_a_bake(self):
        # Without a daemon: Triton compiles and measures all.
        command("record", "-o", self.file, self.program, **WITHOUT_DAEMON)
        # Two autotuned calls, and their configurations as they were compiled.
        self.assertEqual(entries_of(self.file), ["add"] * 2 + ["scale"] * 6 + ["total"])
        self.check_baked(7)

    def test_a_machine_without_a_gpu_records_for_one(self):
        self.program.write_text("import triton_served_program as program\nprogram.run()")
        record = ["record", "--target", "sm_90", "-o", self.file, self.program]
        ran = command(*record, fake_driver=False, **WITHOUT_DAEMON)
        self.assertIn(f"`python -m cubind.triton bake {self.file}` has a daemon compile them", ran.stderr)
        self.assertEqual(entries_of(self.file), ["add"] * 2 + ["scale"] * 4 + ["total"])
        self.check_baked(7)

    def test_a_module_is_run_with_options_of_its_own(self):
        module = ("-m", "timeit", "-n", "1", "-r", "1")
        ran = command("record", "--target", "sm_90", "-o", self.file, *module)
        self.assertIn("1 loop, best of 1", ran.stdout)

    def refused(self, text, *options):
        """What is said of a program that cannot be recorded here."""
        self.program.write_text(text)
        record = ["record", *options, "-o", self.file.name, self.program]
        run = {"cwd": self.file.parent, "fake_driver": False, "check": False}
        ended = command(*record, **run, **WITHOUT_DAEMON)
        self.assertEqual(ended.returncode, 1, ended.stderr)
        return ended.stderr

    def test_what_cannot_be_recorded_without_a_gpu_is_said_and_leaves_no_empty_file(self):
        reads = "import torch\nprint(int(torch.ones(3, device='cuda').sum()))"
        for text, options, told in (
            ("import triton_served_program as program\nprogram.run()", (), "Triton finds no GPU here"),
            (
                "import os\nos.chdir('/')\nraise SystemExit(1)",
                ("--target", "sm_90"),
                "no kernel was asked for",
            ),
            (reads, (), "no kernel was asked for; without a GPU: record --target sm_90"),
            ("", ("--target", "sm_1"), 'target: "sm_1" is none of sm_75,'),
            (reads, ("--target", "sm_90"), "If it needs a GPU (tensors have no contents here)"),
        ):
            with self.subTest(told):
                self.assertIn(told, self.refused(text, *options))
                self.assertFalse(self.file.exists())
