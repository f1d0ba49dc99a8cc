"""Ranks compare what they run: two processes of torch.distributed, and the choices of more."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import triton_torch_found  # noqa: F401  first: it looks for a Python with Triton and torch

# isort: split
import cubind
import cubind.triton

PROGRAM = """
import sys, torch.distributed as distributed
import cubind, cubind.triton, triton_stub as stub
from triton_stub import grid, tuned
rank, file = int(sys.argv[1]), sys.argv[2]
distributed.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
stub.start()
def chosen(answer, n):
    stub.install(stub.Daemon(answer))
    kernel = tuned()
    kernel[grid](stub.Tensor((1000,)), stub.Tensor((1000,)), n, 2.0)
    return kernel
kernel = chosen(1, 1000)
print(cubind.triton.verify_ranks())
kernel = chosen(rank, 1000)
try:
    cubind.triton.verify_ranks()
except cubind.FailedPreconditionError as error:
    print(error)
"""


class Processes(unittest.TestCase):
    def test_two_ranks_find_what_they_run_differently(self):
        with tempfile.TemporaryDirectory() as folder:
            ranks = [
                subprocess.Popen(
                    [sys.executable, "-c", PROGRAM, str(rank), pathlib.Path(folder, "meeting")],
                    stdout=subprocess.PIPE,
                    text=True,
                )
                for rank in range(2)
            ]
            told = [rank.communicate(timeout=300)[0] for rank in ranks]
        for text in told:
            self.assertRegex(text, r"^1\ncubind.triton.verify_ranks: 1 of 1 choices differ between ranks")
            self.assertRegex(text, r"scale \(1000, .*: rank 0 runs BLOCK: 128.* rank 1 runs BLOCK: 256")


class Alone(unittest.TestCase):
    def test_without_a_group_it_says_so(self):
        with self.assertRaisesRegex(cubind.FailedPreconditionError, "init_process_group"):
            cubind.triton.verify_ranks()
