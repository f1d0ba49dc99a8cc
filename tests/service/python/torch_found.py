"""For tests that need torch."""

import unittest

import python_found

SKIPPED = python_found.SKIPPED
python_found.require("torch")


def main():
    """Runs the tests of the file."""
    unittest.main()
