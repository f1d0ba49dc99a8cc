"""What of a problem is read from arrays."""

import contextlib
import json
import os
import pathlib
import tempfile
import unittest
from unittest import mock

import cubind
import running

KERNEL = "rmsnorm_forward"


def array(*shape, typestr="<f4"):
    return running.FakeArray(0x10000, shape, typestr)


class Problems(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(running.Daemon())

    def setUp(self):
        running.FakeDriver(5)
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        record = {"CUBIND_RECORD": str(self.folder / "shapes.jsonl")}
        with mock.patch.dict(os.environ, record):
            self.client = self.enterContext(cubind.connect(self.daemon.address))
        self.kernel = self.client.kernel(KERNEL)

    def asked(self, kernel, **named):
        """The problem of a call."""
        with contextlib.suppress(cubind.CubindError):  # there need not be a variant
            kernel(**{"eps": 1e-6, **named})
        problem = json.loads((self.folder / f"shapes.{KERNEL}.jsonl").read_text().splitlines()[-1])
        self.assertEqual(problem.pop("kernel"), KERNEL)
        return problem

    def test_dims_and_types_come_from_the_arrays(self):
        problem = self.asked(self.kernel, w=array(64), x=array(8, 64), y=array(8, 64))
        self.assertEqual(list(problem.items()), [("N", 8), ("D", 64), ("T", "f32")])

    def test_the_first_axes_of_an_array_are_the_first_of_its_spec(self):
        self.assertEqual(self.asked(self.kernel, x=array(2, 4, 64), y=array(2, 4, 64), w=array(64))["N"], 8)

    def test_what_is_given_holds_and_a_shape_against_it_is_refused(self):
        given = self.client.kernel(KERNEL, T="bf16")
        self.assertEqual(self.asked(given, x=array(8, 64), y=array(8, 64), w=array(64))["T"], "bf16")
        for message, named in (
            (r"argument x: has the shape \[8, 64\], .* with N = 9", {"x": array(8, 64), "N": 9}),
            (r"argument w: .* with D = 64", {"x": array(8, 64), "w": array(32)}),
            (r"argument x: .*expected \[N, D\]", {"x": array(8)}),
            (r"problem\.N: is missing: pass N=\.\.\., T=\.\.\.", {"x": 0x1000, "D": 64}),
        ):
            with self.assertRaisesRegex(cubind.InvalidArgumentError, message):
                self.kernel(**named)

    def test_what_is_no_array_is_refused_by_its_name(self):
        for wrong, kind in (([1.0], "list"), (1.0, "float"), ("x", "str")):
            with self.assertRaisesRegex(
                cubind.InvalidArgumentError, f"argument x: {kind} is no array in GPU memory"
            ):
                self.kernel(x=wrong, w=array(64))
