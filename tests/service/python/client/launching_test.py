"""Launches of the Python client: a real daemon answers, a fake driver takes them."""

import copy
import gc
import sys
import types
from unittest import mock

import cubind
import running
from tuned_daemon import PROBLEM, WithTuning


def buffer(address, elements):
    return running.FakeArray(address, (elements,))


def on_gpu(ordinal, array):
    """As an array of CuPy says it."""
    placed = copy.copy(array)
    placed.device = types.SimpleNamespace(id=ordinal)
    return placed


class Launching(WithTuning):
    def setUp(self):
        super().setUp()
        self.driver = running.FakeDriver(parameters=3)
        question = cubind.Question(device=self.device)
        self.kernel = self.client.kernel("scale", T="f32", K=2, question=question)
        self.x, self.y = buffer(0x10000, 4096), buffer(0x20000, 4096)

    def test_a_call_launches_with_the_grid_and_parameters_of_its_problem(self):
        self.kernel(x=self.x, y=self.y, N=4000, stream=7)
        plan = self.get({**PROBLEM, "N": 4000}).plan
        (launch,) = self.driver.launches()
        self.assertEqual(list(launch.grid), plan[0]["grid"])
        self.assertEqual(list(launch.block), plan[0]["block"])
        self.assertEqual(launch.stream, 7)
        self.assertEqual(list(launch.parameters[:3]), [0x10000, 0x20000, 4000])

    def test_an_array_that_has_dlpack_alone_is_read_by_torch(self):
        class Exporter:
            def __init__(self, device, view):
                self.device, self.view = device, view

            def __dlpack_device__(self):
                return self.device, 0

        torch = types.SimpleNamespace(Tensor=types.ModuleType, from_dlpack=lambda array: array.view)
        y = Exporter(2, self.y)
        with mock.patch.dict(sys.modules, torch=torch):
            self.kernel(x=self.x, y=y, N=4096)
            with self.assertRaisesRegex(cubind.InvalidArgumentError, "argument y: Exporter is no array"):
                self.kernel(x=self.x, y=Exporter(1, self.y), N=4096)
        self.assertEqual([launch.parameters[1] for launch in self.driver.launches()], [0x20000])
        with (
            mock.patch.dict(sys.modules, torch=None, cupy=None),
            self.assertRaisesRegex(cubind.InvalidArgumentError, "argument y: Exporter is no array"),
        ):
            self.kernel(x=self.x, y=y, N=4096)

    def test_other_sizes_of_the_bucket_make_no_call(self):
        self.kernel(x=self.x, y=self.y, N=4096)
        before = self.client.calls
        for n in range(3000, 3100):
            self.kernel(x=self.x, y=self.y, N=n)
        self.assertEqual(self.client.calls, before)
        self.assertEqual(
            [launch.parameters[2] for launch in self.driver.launches()[1:]], list(range(3000, 3100))
        )

    def test_sizes_that_were_not_met_before_leave_no_memory_behind(self):
        def launch(sizes):
            for size in sizes:
                self.kernel(x=self.x, y=self.y, N=size)
            gc.collect()
            return sys.getallocatedblocks()

        before = launch(range(2100, 2200))
        self.assertLess(launch(range(2200, 4097)) - before, 100)

    def test_a_bound_launch_repeats_itself_with_the_same_or_other_arrays(self):
        bound = self.kernel.bind(x=self.x, y=self.y, N=4000)
        self.assertEqual(self.driver.launches(), [])
        bound()
        bound(buffer(0x50000, 4096))
        bound(y=0x60000, x=self.x)
        seen = [list(launch.parameters[:3]) for launch in self.driver.launches()]
        self.assertEqual(seen, [[0x10000, 0x20000, 4000], [0x50000, 0x20000, 4000], [0x10000, 0x60000, 4000]])
        self.assertEqual((bound.arguments, bound.answer.problem["N"]), (("x", "y"), 4000))
        with self.assertRaisesRegex(TypeError, "takes no argument z"):
            bound(z=1)
        with self.assertRaisesRegex(TypeError, "takes 2 arguments, 3"):
            bound(1, 2, 3)
        with self.assertRaisesRegex(cubind.InvalidArgumentError, "argument x: .*aligned"):
            bound(0x10001)

    def test_wrong_arguments_are_refused_by_name_and_nothing_is_launched(self):
        given = {"x": self.x, "y": self.y, "N": 4096}
        wrong = {
            "argument x: is missing": {"x": None},
            "argument x: has 4000 bytes": {"x": buffer(0x10000, 1000)},
            "argument y: has elements of f64": {"y": running.FakeArray(0x30000, (4096,), "<f8")},
            "argument y: is not contiguous": {"y": running.FakeArray(0x30000, (64, 64), strides=(4, 256))},
            "argument y: .*no array in GPU memory": {"y": [1, 2]},
            "argument x: .*aligned to 2 bytes": {"x": buffer(0x10002, 4096)},
            "argument y: lies on GPU 1, the first array on GPU 0": {
                "x": on_gpu(0, self.x),
                "y": on_gpu(1, self.y),
            },
            "argument z: .*it takes x, y": {"z": self.x},
            "cannot allocate an array of f32 next to a FakeArray": {"y": None},
            "problem.N: is missing: pass N=": {"N": None},
        }
        for message, change in wrong.items():
            call = {name: value for name, value in {**given, **change}.items() if value is not None}
            with self.subTest(message), self.assertRaisesRegex(cubind.InvalidArgumentError, message):
                self.kernel(**call)
        self.assertEqual(self.driver.launches(), [])

    def test_a_cubin_is_loaded_once_whatever_it_is_asked_for(self):
        self.kernel(x=self.x, y=self.y, N=4096)
        before = self.driver.modules()
        with cubind.connect(self.daemon.address) as other:
            kernel = other.kernel("scale", T="f32", K=2, question=cubind.Question(device=self.device))
            kernel(x=self.x, y=self.y, N=4000)
        self.assertEqual(self.driver.modules(), before)
        self.assertEqual([launch.parameters[2] for launch in self.driver.launches()], [4096, 4000])

    def test_an_unknown_kernel_is_refused_with_the_known_ones(self):
        with self.assertRaisesRegex(cubind.NotFoundError, "known: .*scale"):
            self.client.kernel("scael")
