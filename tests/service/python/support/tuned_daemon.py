"""For tests against a daemon that replays a recorded table, in which a problem is tuned."""

import unittest

import cubind
import running

PROBLEM = {"N": 4096, "K": 2, "T": "f32"}


class WithDaemon(unittest.TestCase):
    """`device` is the label of the replay device, for which PROBLEM is tuned."""

    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(running.Daemon())
        with cubind.connect(cls.daemon.address, timeout=running.PATIENCE) as client:
            cls.device = running.offered_device(client)
            cls.tuned = client.tune([{"kernel": "scale", **PROBLEM}], progress=False)

    def setUp(self):
        self.client = cubind.connect(self.daemon.address, timeout=running.PATIENCE)
        self.addCleanup(self.client.close)

    def get(self, problem=PROBLEM, **options):
        return self.client.get("scale", problem, device=self.device, **options)
