"""bench/harmless: whether its checks can fail."""

import unittest

import running

harmless = running.bench("harmless")

REPORT = [
    "cubind: unix:///a; calls waited 2 ms for answers",
    "cubind: matmul: asked 3, launched 40, torch's own 2",
]


def made(**change):
    """A run without a fault, but for the change."""
    run = {"losses": [1.0] * 40, "before": [5.0] * 40, "after": [5.0] * 40, "loaded": True}
    return run | {"warnings": [], "report": REPORT} | change


class Checks(unittest.TestCase):
    def faults(self, mode="torch", **change):
        """Those of a round in which the mode's run has the change."""
        runs = {name: [made(**(change if name == mode else {}))] for name in harmless.MODES}
        return harmless.faults({name: harmless.summary(name, runs[name], runs["torch"]) for name in runs})

    def test_a_round_without_a_fault(self):
        self.assertEqual(self.faults(), [])
        self.assertEqual(self.faults("killed", after=[5.0] * 39 + [54.0], losses=[1.0] * 39 + [1.5]), [])

    def test_each_fault_is_found(self):
        changes = {
            "losses differ by 0.060": {"losses": [1.06] * 40},
            "a step took 51.0 ms more": {"after": [5.0] * 39 + [56.0]},
            "no kernel was launched": {"report": REPORT[:1]},
            "not every kernel was loaded": {"loaded": False},
        }
        for told, change in changes.items():
            with self.subTest(told):
                (fault,) = self.faults("stopped", **change)
                self.assertIn(told, fault)

    def test_torchs_own_must_not_take_longer(self):
        slow = [5.0 * 1.03] * 40
        self.assertEqual(self.faults("killed", before=slow, after=slow), [])
        for mode in ("off", "absent"):
            (fault,) = self.faults(mode, before=slow)
            self.assertEqual(fault, f"{mode}: median_ms_before is 3.0 % above torch's")
