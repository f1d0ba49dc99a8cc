"""DTensors, on two ranks of the CPU, and tensors of several devices. Needs torch."""

import pathlib
import unittest

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
import cubind
import cubind.torch as operators
import running
import torch
import torch_launches

RANKS = pathlib.Path(__file__).with_name("dtensor_ranks.py")


class Ranks(unittest.TestCase):
    def test_two_ranks_run_on_their_own_rows_and_refuse_what_leaves_no_row_whole(self):
        launch = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", RANKS]
        result = running.run_python_for_both(launch, OMP_NUM_THREADS="1")
        told = sorted(line for line in result.stdout.splitlines() if line)
        self.assertEqual(told, ["rank 0: right", "rank 1: right"])


class Devices(unittest.TestCase):
    def test_tensors_of_several_devices_are_refused_with_their_names(self):
        here, there = torch.ones(2, 4), torch.ones(4, device="meta")
        refused = self.assertRaisesRegex(
            cubind.InvalidArgumentError, "they lie on cpu and meta, .*one device"
        )
        with torch_launches.as_if_on_gpu(), refused:
            operators.rms_norm(here, (4,), there)
