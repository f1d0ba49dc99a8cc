"""CUBIND_TRITON=1: processes that others start have cubind.triton without a line of theirs. Without it the
entry point costs nothing."""

import gzip
import json
import pathlib
import tempfile
import unittest

import python_found

python_found.require("grpc", "torch", "triton")
import running  # noqa: E402
import triton  # noqa: E402
from fake_daemon import FakeDaemon, chosen  # noqa: E402

PROGRAM = """
import multiprocessing, sys

def work(number):
    import torch
    import triton_found, triton_stub as stub
    stub.start()
    stub.tuned()[stub.grid](stub.Tensor((1000,)), stub.Tensor((1000,)), 1000, 2.0)
    return stub.blocks()

if __name__ == "__main__":
    import torch  # as programs that start workers for it do

    if sys.argv[1] == "pool":
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            print(pool.map(work, range(2), 1))
    else:
        print(work(0))
"""

COMPILES = """
import torch, triton
import triton_found, triton_stub as stub
import cubind.triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

signature = {"x": "*fp32", "y": "*fp32", "N": "i32", "factor": "fp32", "BLOCK": "constexpr"}
triton.compile(ASTSource(triton.jit(stub.scale), signature, {"BLOCK": 128}), target=GPUTarget("cuda", 90, 32))
print(cubind.triton.report())
"""


class Autoload(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        running.entry_points(self.folder)
        (self.folder / "program.py").write_text(PROGRAM)
        self.daemon = self.enterContext(FakeDaemon(chosen(1)))

    def run_python(self, *arguments, **environment):
        told = {"CUBIND_TRITON": "1", "CUBIND_REPORT": "1", "CUBIND_ADDRESS": self.daemon.address}
        return running.run_installed(self.folder, arguments, **{**told, **environment})

    def test_a_spawned_pool_is_served_and_one_report_names_its_processes(self):
        ended = self.run_python("program.py", "pool")
        self.assertEqual(ended.stdout, "[[4], [4]]\n", ended.stderr)
        self.assertEqual(ended.stderr.count("scale: asked 1, served 1, tuning 0"), 2, ended.stderr)
        self.assertRegex(ended.stderr, r"cubind.triton: process \d+ \(SpawnPoolWorker-\d\):\n")
        self.assertEqual(len(self.daemon.defined), 2)  # to be tuned, and its winner to be compiled

    def test_ranks_of_torchrun_are_served(self):
        run = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "program.py", "once")
        ended = self.run_python(*run)
        self.assertEqual(ended.stdout.count("[4]"), 2, ended.stderr)
        for rank in range(2):
            self.assertRegex(
                ended.stderr, rf"cubind.triton: process \d+ \(rank {rank}\):\n.*scale: asked 1, served 1"
            )

    def test_what_the_module_starts_has_it_too_and_is_recorded(self):
        command = ("-m", "cubind.triton", "record", "-o", "kernels", "program.py", "pool")
        ended = self.run_python(*command, CUBIND_TRITON="")
        self.assertEqual(ended.stdout, "[[4], [4]]\n", ended.stderr)
        with gzip.open(self.folder / "kernels") as lines:
            self.assertEqual({json.loads(line)["entry"] for line in lines}, {"scale"})

    def test_a_worker_that_only_compiles_begins_to_use_no_gpu(self):
        workers = self.folder / "compile_worker"
        workers.mkdir()
        for path, told in (
            (self.folder / "compiles.py", "1 kernels were compiled here: each is compiled in a process that"),
            (workers / "__main__.py", "no autotuned kernel was asked for"),
        ):
            path.write_text(COMPILES)
            ended = self.run_python(path)
            self.assertIn(told, ended.stdout, ended.stderr)
        self.assertEqual(self.daemon.asked, [])

    def test_without_the_variable_or_with_autoloading_off_nothing_is_patched(self):
        for environment in ({"CUBIND_TRITON": "0"}, {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}):
            ended = self.run_python("program.py", "once", **environment)
            self.assertEqual(ended.stdout, "[8, 4, 8]\n", ended.stderr)  # Triton's own tuning
        self.assertEqual(self.daemon.asked, [])

    def test_it_raises_nothing(self):
        ended = self.run_python("-c", "import torch, triton; print('runs')", CUBIND_TRITON_CONTENTS="5")
        self.assertEqual(ended.stdout, "runs\n", ended.stderr)
        self.assertIn('cubind.triton: CUBIND_TRITON_CONTENTS: "5" is neither 0 nor 1', ended.stderr)

    def test_a_triton_that_is_other_than_known_is_imported_and_left_alone(self):
        for module in ("_artifacts", "_launching")[: 1 + (triton.__version__ < "3.7")]:
            with self.subTest(module):
                broken = (
                    f"sys.modules['cubind.triton.{module}'] = None"  # as if Triton lacked what it imports
                )
                patched = "triton.runtime.Autotuner.run.__module__"
                text = f"import sys, torch; {broken}; import triton; print({patched})"
                ended = self.run_python("-c", text)
                self.assertEqual(ended.stdout, "triton.runtime.autotuner\n", ended.stderr)
                self.assertIn("cubind.triton: ModuleNotFoundError: ", ended.stderr)

    def test_a_report_outlives_the_folder_of_the_others(self):
        text = "import os, shutil, torch, triton; shutil.rmtree(os.environ['CUBIND_TRITON_REPORTS'])"
        ended = self.run_python("-c", text)
        self.assertEqual(ended.stderr, "cubind.triton: no autotuned kernel was asked for\n")

    def test_without_the_variable_the_entry_point_imports_nothing(self):
        load = "import sys; before = {*sys.modules}; import cubind_autoload; cubind_autoload.load(); "
        load += "print(*sorted({*sys.modules} - before))"
        for value in ("", "0", "off", "False"):
            self.assertEqual(self.run_python("-c", load, CUBIND_TRITON=value).stdout, "cubind_autoload\n")
        self.assertIn("cubind.triton", self.run_python("-c", load).stdout.split())
