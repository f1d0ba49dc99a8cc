"""A kernel of Triton's autotuner from its first call to the winner: a real daemon, whose agent compiles with
a real Triton and plays a recorded table instead of a GPU."""

import unittest

import triton_grpc_found  # noqa: F401  first: it looks for a Python with Triton and gRPC

# isort: split
import cubind
import cubind.triton
import running
import triton
import triton.language as tl
import triton_replaying as replaying
import triton_stub as stub
from triton_replaying import call
from triton_stub import blocks, tuned

replaying.require()


class Tuned(unittest.TestCase):
    def setUp(self):
        stub.start()
        self.client = replaying.serve(self)
        stub.forget()

    def install(self, waits):
        stub.install_client(self.client, waits, running.PATIENCE, patience=5.0)
        self.addCleanup(cubind.triton.uninstall)

    def test_the_winner_follows_the_first_configuration_and_the_next_process_has_it_at_once(self):
        self.install(waits=False)
        kernel = tuned()
        self.assertTrue(running.eventually(lambda: call(kernel) or blocks()[-1] == 4))
        self.assertEqual(set(blocks()[:-1]) - {8}, set())
        self.install(waits=False)
        stub.forget()
        call(tuned())
        self.assertEqual((blocks(), stub.Driver.benchmarked), ([4], 0))

    def test_a_call_that_waits_runs_the_winner(self):
        self.install(waits=True)
        call(tuned())
        self.assertEqual((blocks(), stub.Driver.benchmarked), ([4], 0))


def product(x, z, y, N, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)[:, None] * N + tl.arange(0, BLOCK)[None, :]
    total = tl.zeros([BLOCK, BLOCK], tl.float32)
    for _ in range(0, N, BLOCK):
        total = tl.dot(tl.load(x + at), tl.load(z + at), total)
        x += BLOCK
        z += BLOCK * N
    tl.store(y + at, total)


class FirstOnesThatDoNotFit(unittest.TestCase):
    """More stages need more shared memory than the GPU has."""

    def setUp(self):
        stub.start()
        tensors = [stub.Tensor((1024, 1024)) for _ in range(3)]
        self.call = lambda kernel: kernel[(1,)](*tensors, 1024)
        spec = stub.spec_of(stub.question_of(self.tuned(), *tensors, 1024))
        self.client = replaying.serve(self, (spec, (5.0, 20.0, 10.0)))
        stub.forget()
        self.addCleanup(cubind.triton.uninstall)

    def tuned(self):
        configs = [triton.Config({"BLOCK": 64}, num_stages=stages) for stages in (8, 3, 2)]
        return triton.autotune(configs, ["N"])(triton.jit(product))

    def test_the_others_are_compared_with_the_first_that_can_be_launched(self):
        stub.install_client(self.client, True, running.PATIENCE)
        self.call(self.tuned())
        self.assertEqual([metadata.num_stages for _, metadata in stub.Driver.launches], [2])
        report = cubind.triton.report()
        self.assertIn("product: asked 1, served 1, tuning 0", report)
        told = "product: cannot be launched here: BLOCK: 64, .*num_stages: 8, .*: product: a block takes 262144 bytes"
        self.assertRegex(report, told)
