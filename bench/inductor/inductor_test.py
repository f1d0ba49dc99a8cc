"""bench/inductor: what it counts, and whether its checks can fail."""

import unittest
import unittest.mock

import running

inductor = running.bench("inductor")


def rank(first_step, candidates=0, chosen=("mm",)):
    marks = {"first_step": first_step}
    return {
        "marks_s": marks,
        "candidates": candidates,
        "configurations": 0,
        "chosen": chosen,
        "kernels": {"k": "XBLOCK: 4"},
    }


class Figures(unittest.TestCase):
    def setUp(self):
        self.document = {
            "starts": {
                "torch_first": [[rank(72, 118), rank(74, 184, ["mm", "bmm"])]],
                "cubind_second": [[rank(32), rank(34)]],
                "torch_copied": [[rank(30)], [rank(32)]],
                "cubind_copied": [[rank(22)], [rank(20)]],
            },
            "step_ms": {"torch_first": [0.5, 0.6], "cubind_first": [0.5, 0.5], "cubind_second": [0.5, 0.59]},
        }

    def faults(self):
        return inductor.faults(inductor.figures(self.document))

    def test_starts_that_hold(self):
        found = inductor.figures(self.document)
        self.assertEqual(found["second_start"], 33 / 73)
        self.assertEqual(found["copied_caches"], 21 / 31)
        self.assertEqual((found["second_differing"], found["torch_differing"]), (0, 1))
        self.assertEqual(self.faults(), [])

    def test_each_fault(self):
        starts = self.document["starts"]
        for name, runs, said in (
            ("cubind_second", [[rank(32, 1), rank(34)]], "the second start measured"),
            (
                "cubind_second",
                [[rank(32), rank(34, 0, ["bmm"])]],
                "ranks of the second start chose differently",
            ),
            (
                "cubind_second",
                [[rank(60), rank(60)]],
                "second_start: 0.822 of torch's, at most 0.667 is expected",
            ),
            ("cubind_copied", [[rank(33)]], "copied_caches: 1.065 of torch's, at most 1.050 is expected"),
        ):
            with self.subTest(said), unittest.mock.patch.dict(starts, {name: runs}):
                self.assertEqual(self.faults(), [said])
        self.document["step_ms"]["cubind_second"] = [0.52, 0.62]
        self.assertEqual(self.faults(), ["step: 1.037 of torch's, at most 1.010 is expected"])
