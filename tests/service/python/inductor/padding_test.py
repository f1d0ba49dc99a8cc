"""Whether Inductor pads a product's inputs."""

import contextlib
import unittest
import unittest.mock

import triton_torch_found  # noqa: F401  first: it looks for a Python with Triton and torch

# isort: split
import inductor_pretended as pretended
from cubind import _sealing
from cubind.errors import SealedError
from torch._inductor.fx_passes import pad_mm
from torch._inductor.utils import fresh_cache


class Padding(unittest.TestCase):
    def setUp(self):
        self.answers = pretended.Answers()

    def installed(self):
        stack = contextlib.ExitStack()
        for context in (fresh_cache(), pretended.gpu()):
            stack.enter_context(context)
        stack.enter_context(pretended.Installed(self.answers))
        return stack

    def test_it_is_measured_once_and_then_served(self):
        for ms, is_padded in ((1.0, True), (3.0, False)):
            key = f"mm 1000x1001 {ms}"
            with self.installed():
                self.assertIsNone(pad_mm.get_cached_should_pad(key))
                self.assertIs(pad_mm.is_padded_faster(key, 2.0, ms), is_padded)
            with self.installed():
                self.assertIs(pad_mm.get_cached_should_pad(key), is_padded)
                self.assertIsNone(pad_mm.get_cached_should_pad(f"{key} another"))

    def test_what_another_process_has_stored_meanwhile_is_taken(self):
        self.answers.others = lambda question: 0
        with self.installed():
            self.assertIs(pad_mm.is_padded_faster("mm", 2.0, 1.0), False)

    def test_a_sealed_program_measures_nothing(self):
        self.enterContext(unittest.mock.patch.object(_sealing.program, "_mode", "error"))
        raises = self.assertRaisesRegex(SealedError, "padding of mm: .*would measure its 2")
        with self.installed(), raises:
            pad_mm.get_cached_should_pad("mm")
