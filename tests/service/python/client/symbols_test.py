"""A kernel with an input in a __constant__ variable, called with arrays; launches go to a fake driver."""

import unittest

import cubind
import running

SOURCE = """
__constant__ float d_weight[64];
template <int THREADS>
__global__ void weigh(const float* x, float* y, long long n) {
  const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
  if (i < n) y[i] = d_weight[i % 64] * x[i];
}
"""
SPEC = {
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


class Symbols(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(running.Daemon())
        cls.client = cls.enterClassContext(cubind.connect(cls.daemon.address, timeout=running.PATIENCE))
        running.add_kernel(cls.daemon, cls.client, "weigh", SOURCE, SPEC)
        device = running.offered_device(cls.client)
        cls.question = cubind.Question(device=device, tune=False)

    def setUp(self):
        self.driver = running.FakeDriver(parameters=3)
        self.kernel = self.client.kernel("weigh", question=self.question)

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
        answer = self.client.get("weigh", {"N": 4096}, device=self.question.device)
        parameter = answer.plan[0]["parameters"][1]
        self.assertEqual((parameter["source"], parameter["symbol"]), ("symbol", "d_weight"))

    def test_an_array_that_is_missing_or_too_small_is_refused(self):
        x, y = running.FakeArray(0x1000, (4096,)), running.FakeArray(0x20000, (4096,))
        with self.assertRaisesRegex(cubind.InvalidArgumentError, "argument weight: is missing"):
            self.kernel(x=x, y=y)
        with self.assertRaisesRegex(cubind.InvalidArgumentError, "argument weight"):
            self.kernel(x=x, y=y, weight=running.FakeArray(0x9000, (32,)))
        self.assertEqual(self.driver.launches(), [])
