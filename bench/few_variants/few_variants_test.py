"""bench/few_variants: which sets it chooses, and a run on recorded trials."""

import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

import running

few_variants = running.bench("few_variants")

PROBLEMS = [{"N": 4096, "K": k, "T": "f32"} for k in (2, 3)]


class BestSets(unittest.TestCase):
    def test_each_size_has_the_least_worst_regret_and_the_default_serves_where_it_is_best(self):
        regrets = {
            "p": {"": 0.3, "a": 0.0, "b": 0.05},
            "q": {"": 0.0, "a": 0.4, "b": 0.02},
            "r": {"": 0.1, "a": 0.0},
        }
        (none, worst, mean), (one, least, _) = few_variants.best_sets(regrets, 4)
        self.assertEqual((none, worst, one, least), ((), 0.3, ("a",), 0.0))
        self.assertTrue(math.isclose(mean, 0.4 / 3))
        self.assertEqual([name for _, name in few_variants.served(regrets, one)], ["a", "", "a"])

    def test_the_best_single_variant_may_have_no_place_in_a_larger_set(self):
        regrets = {"p": {"": 0.5, "a": 0.2, "b": 0.0}, "q": {"": 0.5, "a": 0.2, "c": 0.0}}
        self.assertEqual([one[0] for one in few_variants.best_sets(regrets, 2)], [(), ("a",), ("b", "c")])


class Run(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        subprocess.run([running.TINY_FILES, self.folder], check=True)
        (self.folder / "shapes.json").write_text(json.dumps({"problems": PROBLEMS}))

    def run_bench(self, *arguments):
        files = {"--kernels": "kernels", "--replay": "table.json", "--shapes": "shapes.json"}
        options = [part for option, file in files.items() for part in (option, self.folder / file)]
        return subprocess.run(
            [sys.executable, few_variants.__file__, "--bin", running.PROGRAMS, *options, *arguments, "scale"],
            env=running.WITHOUT_DRIVER,
            capture_output=True,
            text=True,
        )

    def test_few_configurations_serve_all_problems_within_the_bound(self):
        run = self.run_bench("--variants", "2", "--max-regret", "1")
        self.assertEqual(run.returncode, 0, run.stderr)
        found = json.loads(run.stdout)
        chosen = found["sets"][found["variants"]]
        self.assertLessEqual(chosen["worst_regret"], 0.01)
        self.assertLess(chosen["worst_regret"], found["sets"][0]["worst_regret"])
        self.assertEqual(len(chosen["problems"]), len(PROBLEMS))
        for one in chosen["problems"]:
            self.assertIn(one["configuration"], [None, *chosen["configurations"]])

    def test_a_bound_that_no_set_keeps_ends_with_1(self):
        run = self.run_bench("--variants", "1", "--max-regret", "-1")
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIsNone(json.loads(run.stdout)["variants"])
