"""Tensors for tune_kernel(). Needs torch."""

import re
import unittest

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
import cubind
import torch
from tuned_here import N, call, definition


class Tensors(unittest.TestCase):
    def test_one_without_an_array_is_refused_by_its_name(self):
        for tensor in (
            torch.ones(N).to_sparse(),
            torch.ones(N, device="meta"),
            torch.ones(N).to(torch.float8_e4m3fnuz),
            torch._neg_view(torch.ones(N)),
        ):
            told = re.escape(f"argument c: an array of {tensor.dtype} is no array of numbers")
            with self.subTest(tensor.dtype), self.assertRaisesRegex(cubind.InvalidArgumentError, told):
                definition(arguments=[tensor, *call()["arguments"][1:]], answer=None)
