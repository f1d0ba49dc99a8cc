"""A sealed program compiles and tunes nothing without a word: what would be is named, or refused."""

import os
import tempfile
import unittest
import unittest.mock
import warnings

import triton_found  # noqa: F401  first: it looks for a Python with Triton

# isort: split
import cubind
import cubind.triton
import triton
import triton_stub as stub
from triton_stub import blocks, scale, tuned


class Missing:
    """Artifacts of a daemon that has none."""

    served, missed = 0, {}

    def find(self, compiling):
        return stub.Own("is being compiled by the daemon's agent")

    def close(self):
        pass


class Sealed(stub.Case):
    def setUp(self):
        super().setUp()
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(unittest.mock.patch.dict(os.environ, TRITON_CACHE_DIR=folder))

    def install(self, answer=None):
        stub.install(stub.Daemon(answer), Missing())

    def test_a_new_key_is_refused_with_kernel_key_reason_and_remedy(self):
        self.install()
        kernel = tuned()
        self.call(kernel)
        cubind.triton.seal()
        self.call(kernel)
        with self.assertRaises(cubind.triton.SealedError) as refused:
            self.call(kernel, 512)
        error = refused.exception
        self.assertEqual(error.code, "FAILED_PRECONDITION")
        self.assertRegex(error.field, r"^triton_stub\.scale \(512, ")
        self.assertIn("Triton would tune it: it is not for this daemon", error.cause)
        self.assertIn("python -m cubind.triton record", error.cause)

    def test_a_compile_is_refused_and_a_chosen_kernel_in_the_cache_runs(self):
        self.install(1)
        self.call(tuned())
        cubind.triton.seal()
        self.call(tuned())
        self.assertEqual(blocks(), [4, 4])
        with self.assertRaisesRegex(
            cubind.triton.SealedError, r"scale \w{12}: .* compile it: it is being compiled"
        ):
            triton.jit(scale)[(8,)](self.x, self.y, 1000, 2.0, BLOCK=64)

    def test_a_warning_names_each_once_and_the_program_goes_on(self):
        self.install()
        cubind.triton.seal("warn")
        with self.assertWarnsRegex(RuntimeWarning, "is sealed, and Triton would tune it") as warned:
            warnings.simplefilter("always")
            self.call(tuned())
            self.call(tuned())
        told = [str(each.message) for each in warned.warnings if "is sealed" in str(each.message)]
        self.assertEqual([text.count("tune it") for text in told].count(1), 1)
        self.assertEqual(blocks()[-1], 8)

    def test_the_environment_seals_from_the_start(self):
        with unittest.mock.patch.dict(os.environ, CUBIND_TRITON_SEALED="error"):
            self.install()
        with self.assertRaises(cubind.triton.SealedError):
            self.call(tuned())
        cubind.triton.uninstall()
        self.call(tuned())

    def test_a_mode_that_does_not_exist_is_refused(self):
        self.install()
        with self.assertRaisesRegex(cubind.InvalidArgumentError, '"quiet" is neither warn nor error'):
            cubind.triton.seal("quiet")
        refused = self.assertRaisesRegex(cubind.InvalidArgumentError, "CUBIND_TRITON_SEALED: ")
        with unittest.mock.patch.dict(os.environ, CUBIND_TRITON_SEALED="1"), refused:
            self.install()
