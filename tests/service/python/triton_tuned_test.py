"""A kernel of Triton's autotuner from its first call to the winner: a real daemon, whose agent compiles with
a real Triton and plays a recorded table instead of a GPU."""

import hashlib
import json
import subprocess
import sys
import unittest
import unittest.mock

import python_found

python_found.require("grpc", "triton")
import triton_found  # noqa: E402, F401

# isort: split
import cubind  # noqa: E402
import cubind.triton  # noqa: E402
import running  # noqa: E402
import triton_stub as stub  # noqa: E402
from cubind.client import Client  # noqa: E402
from cubind.triton import _daemon, _install, _spec  # noqa: E402
from triton_autotune_test import blocks, grid, tuned  # noqa: E402

TIMES = (20.0, 10.0)  # microseconds, of the configurations


def call(kernel):
    kernel[grid](stub.Tensor((1000,)), stub.Tensor((1000,)), 1000, 2.0)


def spec():
    """Of the call."""
    found = stub.question_of(tuned(), stub.Tensor((1000,)), stub.Tensor((1000,)), 1000, 2.0, grid=grid)
    return _spec.spec_of(found)


class Replaying(running.Daemon):
    """Its agent compiles Triton kernels, and its table has the one that is called."""

    def __init__(self):
        self.spec = spec()
        super().__init__("--triton-python", sys.executable)

    def _tiny_arguments(self):
        arguments = super()._tiny_arguments()
        file = self.folder / "table.json"
        table = json.loads(file.read_text())
        table["trials"] = [self._trial(table["trials"][0], *each) for each in enumerate(TIMES)]
        file.write_text(json.dumps(table))
        return arguments

    def _trial(self, like, index, time_us):
        problem = {"dims": self.spec.problem, "types": {}, "flags": {}, "scenario": ""}
        trial = json.loads(json.dumps(like)) | {
            "kernel": self.spec.name,
            "problem": problem,
            "configuration": {"CONFIG": index},
            "trial": hashlib.sha256(bytes([index])).hexdigest(),
        }
        for block in (*trial["screening"], *trial["finals"]):
            block["samples_us"] = [time_us * (1 + 0.001 * (i % 3)) for i in range(len(block["samples_us"]))]
        for verification in trial.get("verifications", []):
            verification["problem"] = problem
        return trial


def has_triton_agents():
    """Whether the programs of this build take Triton's Python."""
    told = subprocess.run([running.PROGRAMS / "cubind", "--help"], capture_output=True, text=True)
    return "--triton-python" in told.stdout


if not has_triton_agents():
    print("the agent compiles no Triton kernels: these tests were not run", file=sys.stderr)
    sys.exit(python_found.SKIPPED)


class Tuned(unittest.TestCase):
    def setUp(self):
        stub.start()
        self.daemon = self.enterContext(Replaying())
        self.client = self.enterContext(cubind.connect(self.daemon.address))
        self.assertTrue(running.eventually(self.device))
        label = self.device()
        # The GPU is that of the table.
        device = lambda client, device, gpu: setattr(device, "label", label)  # noqa: E731
        self.enterContext(unittest.mock.patch.object(Client, "_describe_gpu", device))
        stub.forget()

    def device(self):
        return next((each["label"] for each in self.client.status()["devices"] if each["offered"]), None)

    def install(self, waits):
        _install.put_in(_daemon.CubindDaemon(self.client, waits, running.PATIENCE, patience=5.0))
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
