"""For tests against a daemon that replays a recorded table."""

import unittest

import running

PROBLEM = {"N": 4096, "K": 2, "T": "f32"}


class WithDaemon(unittest.TestCase):
    """One for the class, with a client for each test. `device` is the label of the replay device."""

    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(running.Daemon())
        with cls.daemon.connect() as client:
            cls.device = running.offered_device(client)

    def setUp(self):
        self.client = self.enterContext(self.daemon.connect())


class WithTuning(WithDaemon):
    """PROBLEM is tuned for the device."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with cls.daemon.connect() as client:
            cls.tuned = client.tune([{"kernel": "scale", **PROBLEM}], progress=False)

    def get(self, problem=PROBLEM, **options):
        return self.client.get("scale", problem, device=self.device, **options)
