"""A kernel of Triton's autotuner from its first call to the winner: a real daemon, whose agent compiles with
a real Triton and plays a recorded table instead of a GPU."""

import unittest

import python_found

python_found.require("grpc", "triton")
import triton_found  # noqa: E402, F401

# isort: split
import cubind  # noqa: E402
import cubind.triton  # noqa: E402
import running  # noqa: E402
import triton_replaying as replaying  # noqa: E402
import triton_stub as stub  # noqa: E402
from triton_replaying import call  # noqa: E402
from triton_stub import blocks, tuned  # noqa: E402

replaying.require()


class Tuned(unittest.TestCase):
    def setUp(self):
        stub.start()
        self.daemon = self.enterContext(replaying.Replaying())
        self.client = self.enterContext(cubind.connect(self.daemon.address))
        self.enterContext(replaying.on_its_gpu(self.client))
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


if __name__ == "__main__":
    unittest.main()
