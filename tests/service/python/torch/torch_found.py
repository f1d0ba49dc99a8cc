"""For tests that need torch."""

import unittest

import python_found

SKIPPED = python_found.SKIPPED
python_found.require("torch")
import torch  # noqa: E402

if torch.backends.cuda.is_built():  # CUDA's runtime refuses the fake driver
    torch._C._cuda_getCurrentRawStream = lambda device: 0
    torch._C._cuda_getDevice = lambda: -1


def main():
    """Runs the tests of the file."""
    unittest.main()
