"""For tests that need torch: the Python of CUBIND_PYTHON is taken where this one has no torch, and the test
is left out where neither has."""

import importlib.util
import os
import subprocess
import sys
import unittest

SKIPPED = 77  # CTest's return code for a test that was not run


def _has_torch(python):
    return subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0


if importlib.util.find_spec("torch") is None:
    other = os.environ.get("CUBIND_PYTHON", "")
    if not other or not _has_torch(other):
        print(
            "torch is not installed: these tests were not run. CUBIND_PYTHON names a Python that has it",
            file=sys.stderr,
        )
        sys.exit(SKIPPED)
    os.execv(other, [other, "-B", *sys.argv])


def main():
    """Runs the tests of the file."""
    unittest.main()
