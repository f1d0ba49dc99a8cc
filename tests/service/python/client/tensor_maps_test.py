"""A kernel with a tensor map, called with arrays; launches go to a fake driver, whose descriptors begin with
the address of the buffer."""

import unittest

import cubind
import running

SOURCE = """
#include <cuda.h>
template <int ROWS>
__global__ void twice(const __grid_constant__ CUtensorMap map, float* y) {
  y[threadIdx.x] = 2 * ROWS * (float)map.opaque[0];
}
"""
SPEC = {
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


class TensorMaps(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(running.Daemon())
        cls.client = cls.enterClassContext(cubind.connect(cls.daemon.address, timeout=running.PATIENCE))
        running.add_kernel(cls.daemon, cls.client, "twice", SOURCE, SPEC)
        device = running.offered_device(cls.client)
        cls.question = cubind.Question(device=device, tune=False)

    def setUp(self):
        self.driver = running.FakeDriver(parameters=2)
        self.kernel = self.client.kernel("twice", question=self.question)
        self.x, self.other = (running.FakeArray(address, (1000, 64)) for address in (0x10000, 0x90000))
        self.y = running.FakeArray(0xF0000, (1000,))

    def passed(self):
        return [list(one.parameters[:2]) for one in self.driver.launches()]

    def test_the_kernel_gets_the_descriptor_of_the_array_that_is_passed(self):
        for x in (self.x, self.other):
            self.kernel(x=x, y=self.y, stream=7)
        self.assertEqual(self.passed(), [[0x10000, 0xF0000], [0x90000, 0xF0000]])

    def test_the_plan_has_the_numbers_of_the_descriptor(self):
        answer = self.client.get("twice", {"N": 1000, "D": 64}, device=self.question.device)
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
            self.client.get("twice", {"N": 1000, "D": 63}, device=self.question.device)

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
