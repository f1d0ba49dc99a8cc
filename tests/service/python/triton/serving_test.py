"""Compiled kernels from a daemon: a process with an empty cache compiles nothing that another one has asked
for, and what it gets is what Triton would have made."""

import json
import unittest

import triton_grpc_found  # noqa: F401  first: it looks for a Python with Triton and gRPC

# isort: split
import running
import triton_replaying as replaying
import triton_stub as stub

replaying.require()


class Served(unittest.TestCase):
    def setUp(self):
        stub.start()
        self.client = replaying.serve(self)

    def run_process(self):
        """With a home and a cache of its own."""
        out = running.run_python_for_both([replaying.PROGRAM, self.client.address])
        return json.loads(out.stdout.splitlines()[-1])

    def is_idle(self):
        status = self.client.status()
        return status["jobs_queued"] == status["jobs_running"] == 0

    def test_a_second_process_compiles_nothing(self):
        first = self.run_process()
        self.assertEqual(first["compiled"][:3], ["add", "add", "total"])
        self.assertIn(
            "kernels were compiled here: each is being compiled by the daemon's agent", first["report"]
        )
        self.assertTrue(running.eventually(self.is_idle))
        second = self.run_process()
        self.assertEqual(second["compiled"], [])
        self.assertEqual(second["found"][:3], ["add", "add", "total"])
        self.assertEqual(self.kernels(second), self.kernels(first))

    def kernels(self, found):
        """What was launched, with the shared memory of each."""
        return {(name, shared) for _, name, shared in found["launches"]}
