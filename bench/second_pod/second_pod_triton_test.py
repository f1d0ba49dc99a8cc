"""bench/second_pod: what it counts by Triton's hooks, without a GPU."""

import contextlib
import gc
import io
import os
import sys
import tempfile
import unittest
import unittest.mock

import triton_found  # noqa: F401  first: it looks for a Python with Triton

# isort: split
import running
import triton_stub as stub
from triton import knobs
from triton.runtime import build
from triton_stub import tuned

sys.path.insert(0, str(running.SOURCE / "bench/common"))
import node
import triton_counts


class Counting(stub.Case):
    def setUp(self):
        super().setUp()
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(unittest.mock.patch.dict(os.environ, TRITON_CACHE_DIR=folder))
        self.enterContext(unittest.mock.patch.object(build, "_build", self.build))
        self.addCleanup(setattr, knobs.compilation, "listener", knobs.compilation.listener)
        self.counts = triton_counts.Counts()
        self.counts.install()

    def build(self, *arguments):
        return "built"

    def test_compiles_are_counted_and_what_the_cache_has_is_not(self):
        self.call(kernel := tuned())
        self.assertEqual(self.counts.compiles, ["scale"] * len(kernel.configs))
        self.call(tuned())
        self.assertEqual(len(self.counts.compiles), len(kernel.configs))
        self.assertGreater(self.counts.found, 0)

    def test_builds_of_launchers_are_timed(self):
        self.assertEqual(build._build("name", "source"), "built")
        (seconds,) = self.counts.as_json()["launcher_builds_s"]
        self.assertGreaterEqual(seconds, 0)

    def test_what_triton_says_of_its_tunings_is_counted(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), unittest.mock.patch.object(knobs.autotuning, "print", True):
            self.call(kernel := tuned())
            self.call(kernel)
        self.assertEqual(node.tunings_of(said.getvalue()), ["scale"])

    def test_choices_are_those_of_the_autotuners_by_kernel_and_key(self):
        gc.collect()  # those of other tests
        self.call(kernel := tuned())
        (one,) = [one for one in triton_counts.choices() if one["kernel"] == triton_counts.name_of(kernel)]
        self.assertEqual(one["configuration"], triton_counts.spelled(kernel.best_config))
        self.assertEqual(one["key"], str(next(iter(kernel.cache))))

    def test_a_listener_of_the_program_is_still_called(self):
        seen = []
        knobs.compilation.listener = lambda src, **_: seen.append(src.name)
        counts = triton_counts.Counts()
        counts.install()
        self.call(tuned())
        self.assertEqual(seen, counts.compiles)
