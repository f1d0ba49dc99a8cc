"""Kernels that are added to a daemon and called with arrays: an input in a __constant__ variable, and a
tensor map. Launches go to a fake driver, whose descriptors begin with the address of the buffer."""

import cubind
import running
from tuned_daemon import WithDaemon

WEIGH_SOURCE = """
__constant__ float d_weight[64];
template <int THREADS>
__global__ void weigh(const float* x, float* y, long long n) {
  const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
  if (i < n) y[i] = d_weight[i % 64] * x[i];
}
"""
WEIGH = {
    "name": "weigh",
    "source": "weigh.cu",
    "problem": {"dims": {"N": "elements"}},
    "tunables": {"THREADS": [64, 128]},
    "default": [{"THREADS": 128}],
    "arguments": {
        "x": {"buffer": "f32", "shape": ["N"], "role": "in"},
        "weight": {"buffer": "f32", "shape": ["64"], "role": "in", "symbol": "d_weight"},
        "y": {"buffer": "f32", "shape": ["N"], "role": "out"},
        "n": {"scalar": "i64", "expr": "N"},
    },
    "launches": [
        {
            "entry": "weigh<{THREADS}>",
            "arguments": ["x", "weight", "y", "n"],
            "grid": ["cdiv(N, THREADS)"],
            "block": ["THREADS"],
        }
    ],
    "reference": "default",
    "tolerance": {"f32": {"rtol": 0, "atol": 0}},
}

TWICE_SOURCE = """
#include <cuda.h>
template <int ROWS>
__global__ void twice(const __grid_constant__ CUtensorMap map, float* y) {
  y[threadIdx.x] = 2 * ROWS * (float)map.opaque[0];
}
"""
TWICE = {
    "name": "twice",
    "source": "twice.cu",
    "problem": {"dims": {"N": "rows", "D": "columns"}},
    "tunables": {"ROWS": [64, 128]},
    "default": [{"ROWS": 128}],
    "arguments": {
        "x": {"buffer": "f32", "shape": ["N", "D"], "role": "in"},
        "y": {"buffer": "f32", "shape": ["N"], "role": "out"},
        "map": {"tensor_map": "x", "box": [32, "ROWS"], "swizzle": "128B"},
    },
    "launches": [
        {"entry": "twice<{ROWS}>", "arguments": ["map", "y"], "grid": ["cdiv(N, ROWS)"], "block": [64]}
    ],
    "reference": "default",
    "tolerance": {"f32": {"rtol": 0, "atol": 0}},
}
CAPTURING = 0xCAB  # a stream of the fake driver


class AddedKernel(WithDaemon):
    """With a kernel of one's own, whose launches have so many parameters."""

    source, spec, parameters = "", {}, 0

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with cls.daemon.connect() as client:
            running.add_kernel(cls.daemon, client, cls.source, cls.spec)

    def setUp(self):
        super().setUp()
        self.driver = running.FakeDriver(self.parameters)
        question = cubind.Question(device=self.device, tune=False)
        self.kernel = self.client.kernel(self.spec["name"], question=question)


class Symbols(AddedKernel):
    source, spec, parameters = WEIGH_SOURCE, WEIGH, 3

    def test_an_array_is_copied_to_its_variable_before_the_launch_on_the_same_stream(self):
        x, weight, y = (
            running.FakeArray(a, (n,)) for a, n in ((0x1000, 4096), (0x9000, 64), (0x20000, 4096))
        )
        for _ in range(2):
            self.kernel(x=x, weight=weight, y=y, stream=7)
        launches = self.driver.launches()
        self.assertEqual([list(one.parameters[:3]) for one in launches], 2 * [[0x1000, 0x20000, 4096]])
        copies = self.driver.copies()
        self.assertEqual([copy[1:] for copy in copies], 2 * [(0x9000, 256, 7)])

    def test_the_plan_names_the_variable(self):
        answer = self.client.get("weigh", {"N": 4096}, device=self.device)
        parameter = answer.plan[0]["parameters"][1]
        self.assertEqual((parameter["source"], parameter["symbol"]), ("symbol", "d_weight"))

    def test_an_array_that_is_missing_or_too_small_is_refused(self):
        x, y = running.FakeArray(0x1000, (4096,)), running.FakeArray(0x20000, (4096,))
        with self.assertRaisesRegex(cubind.InvalidArgumentError, "argument weight: is missing"):
            self.kernel(x=x, y=y)
        with self.assertRaisesRegex(cubind.InvalidArgumentError, "argument weight"):
            self.kernel(x=x, y=y, weight=running.FakeArray(0x9000, (32,)))
        self.assertEqual(self.driver.launches(), [])


class TensorMaps(AddedKernel):
    source, spec, parameters = TWICE_SOURCE, TWICE, 2

    def setUp(self):
        super().setUp()
        self.x, self.other = (running.FakeArray(address, (1000, 64)) for address in (0x10000, 0x90000))
        self.y = running.FakeArray(0xF0000, (1000,))

    def passed(self):
        return [list(one.parameters[:2]) for one in self.driver.launches()]

    def test_the_kernel_gets_the_descriptor_of_the_array_that_is_passed(self):
        for x in (self.x, self.other):
            self.kernel(x=x, y=self.y, stream=7)
        self.assertEqual(self.passed(), [[0x10000, 0xF0000], [0x90000, 0xF0000]])

    def test_the_plan_has_the_numbers_of_the_descriptor(self):
        answer = self.client.get("twice", {"N": 1000, "D": 64}, device=self.device)
        parameter = answer.plan[0]["parameters"][0]
        self.assertEqual((parameter["source"], parameter["name"]), ("tensor_map", "x"))
        numbers = parameter["tensor_map"]
        self.assertEqual(
            (numbers["sizes"], numbers["strides"], numbers["box"]), ([64, 1000], [256], [32, 128])
        )

    def test_a_problem_that_tma_does_not_take_is_refused_with_its_place(self):
        with self.assertRaisesRegex(
            cubind.FailedPreconditionError, "/arguments/map/strides/0: 252 bytes are not a multiple of 16"
        ):
            self.client.get("twice", {"N": 1000, "D": 63}, device=self.device)

    def test_a_bound_launch_that_a_graph_holds_names_its_buffers_and_refuses_others(self):
        bound = self.kernel.bind(x=self.x, y=self.y, stream=CAPTURING)
        self.assertEqual(bound.captured, {})
        bound()
        self.assertEqual(bound.captured, {"x": 0x10000})
        with self.assertRaisesRegex(cubind.FailedPreconditionError, "argument x: 0x90000 was given"):
            bound(x=self.other)
        bound(y=running.FakeArray(0xE0000, (1000,)))
        self.kernel(x=self.other, y=self.y, stream=CAPTURING)
        self.assertEqual(self.passed()[1:], [[0x10000, 0xE0000], [0x90000, 0xF0000]])
