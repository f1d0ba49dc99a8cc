"""Scripts of Kernel Tuner, with what cubind.kernel_tuner calls of its package, on a daemon that replays."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import cubind
import numpy as np
import tuned_here
from cubind import kernel_tuner

PACKAGE = {
    "__init__.py": "from .interface import run_kernel, tune_kernel",
    "interface.py": "def tune_kernel(*args, **options):\n    return 'own', options\n"
    "def run_kernel(name, *args):\n    return [name, *args]",
    "util.py": """
import json
class ErrorConfig(str): pass
class InvalidConfig(ErrorConfig): pass
class CompilationFailedConfig(ErrorConfig): pass
class RuntimeFailedConfig(ErrorConfig): pass
def get_objective_defaults(objective, is_higher): return objective or "time", bool(is_higher)
def get_best_config(results, objective, is_higher):
    return (max if is_higher else min)((r for r in results if "__error__" not in r), key=lambda r: r[objective])
class NpEncoder(json.JSONEncoder): pass
def read_cache(path, open_cache): return json.loads(open(path).read())
def process_metrics(row, metrics): return row | {name: each(row) for name, each in (metrics or {}).items()}
""",
    "searchspace.py": "class Searchspace:\n    def __init__(self, values, restrictions, threads): self.size = 80",
}


class Scripts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        package = pathlib.Path(folder, "kernel_tuner")
        package.mkdir()
        for name, text in PACKAGE.items():
            (package / name).write_text(text)
        cls.enterClassContext(mock.patch.object(sys, "path", [*sys.path, folder]))
        defined = (
            tuned_here.definition(tolerance={"rtol": 1e-5, "atol": 1e-6}),
            tuned_here.definition(answer=None, tolerance=float("inf")),
        )
        daemon = cls.enterClassContext(tuned_here.Daemon(*defined))
        cls.client = cls.enterClassContext(daemon.connect())

    def tune(self, **changed):
        """The results, the environment and what was said."""
        given = tuned_here.call(**changed)
        order = ("kernel_name", "kernel_source", "problem_size", "arguments", "tune_params")
        first = [given.pop(name) for name in order]
        said = io.StringIO()
        own = mock.Mock(return_value=("own", {}))
        with contextlib.redirect_stderr(said):
            tune = kernel_tuner.Replacement(own, self.client)
            results = tune(*first, **{"quiet": True, **given})
        return *results, said.getvalue()

    def test_results_have_kernel_tuners_form(self):
        results, environment, said = self.tune(metrics={"double": lambda row: 2 * row["time"]})
        self.assertEqual((len(results), said), (8, ""))
        best = environment["best_config"]
        self.assertEqual((best["block_size_x"], best["per_thread"]), (256, 2))
        self.assertAlmostEqual(best["time"], 0.01, places=4)
        self.assertAlmostEqual(best["double"], 2 * best["time"])
        self.assertGreater(len(best["times"]), 5)
        timings = {"compile_time", "verification_time", "benchmark_time", "strategy_time", "framework_time"}
        self.assertLess(timings, {*best})

    def test_what_fails_has_kernel_tuners_error(self):
        source = tuned_here.SOURCE + "#if per_thread == 4\n#error four\n#endif\n"
        failing = tuned_here.definition(kernel_source=source, tolerance={"rtol": 1e-5, "atol": 1e-6})
        with (
            tuned_here.Daemon(failing) as daemon,
            daemon.connect() as self.client,
        ):
            results, _, _ = self.tune(kernel_source=source)
        self.client = type(self).client
        failed = [row for row in results if "__error__" in row]
        self.assertEqual({row["per_thread"] for row in failed}, {4})
        self.assertEqual({type(row["__error__"]).__name__ for row in failed}, {"CompilationFailedConfig"})

    def test_without_an_answer_nothing_is_compared(self):
        results, _, said = self.tune(answer=None)
        self.assertEqual((len(results), said), (8, ""))
        _, _, said = self.tune(verify=lambda *_: True)
        self.assertIn("verify= is not called and the outputs are not compared", said)

    def test_results_are_kept_in_kernel_tuners_file(self):
        with tempfile.TemporaryDirectory() as folder:
            name = pathlib.Path(folder, "kept")
            results, environment, said = self.tune(cache=name)
            path = name.with_suffix(".json")
            kept = json.loads(path.read_text())
            self.assertEqual((kept["device_name"], kept["objective"]), (environment["device_name"], "time"))
            self.assertEqual((len(kept["cache"]), said), (len(results), ""))
            self.assertEqual(kept["cache"]["256,2"], environment["best_config"])
            kept["cache"]["256,2"]["time"] = 7
            path.write_text(json.dumps(kept))
            self.tune(cache=str(path))
            self.assertEqual(json.loads(path.read_text())["cache"]["256,2"]["time"], 7)
            others = json.dumps({**kept, "kernel_name": "other"})
            path.write_text(others)
            results, _, said = self.tune(cache=str(path))
            self.assertIn("kept.json stays as it is: it is of another kernel", said)
            self.assertEqual((len(results), path.read_text()), (8, others))
            _, _, said = self.tune(cache=pathlib.Path(folder, "nowhere", "kept"))
            self.assertIn("is not written", said)

    def test_a_strategy_is_its_budget(self):
        with mock.patch.object(kernel_tuner, "tune_here", side_effect=cubind.AbortedError("")) as tune:
            for options, budget in {
                "None, {'max_fevals': 60}": {"max_trials": 60},
                "'random_sample', {}": {"max_trials": 8},
                "'random_sample', {'fraction': 0.5}": {"max_trials": 40},
                "'greedy_ils', {'time_limit': 7}": {"max_seconds": 7},
                "None, None": {},
            }.items():
                strategy, given = eval(options)
                with self.assertRaises(cubind.AbortedError):
                    self.tune(strategy=strategy, strategy_options=given)
                asked = tune.call_args.kwargs
                self.assertEqual(
                    {name: asked[name] for name in ("max_trials", "max_seconds") if name in asked}, budget
                )

    def test_what_the_daemon_does_not_do_stays_kernel_tuners_own(self):
        for told, changed in {
            'lang="C"': {"lang": "C"},
            "textures": {"texmem_args": {"t": 1}},
            "observers": {"observers": [object()]},
            "a function that makes its source": {"kernel_source": lambda _: ""},
            "a strategy of its own": {"strategy": object()},
            "argument c: has elements of f64": {
                "arguments": [np.zeros(tuned_here.N), *tuned_here.call()["arguments"][1:]]
            },
        }.items():
            with self.subTest(told):
                results, _, said = self.tune(**changed)
                self.assertEqual(results, "own")
                self.assertIn("add_arrays stays Kernel Tuner's own: ", said)
                self.assertIn(told, said)

    def test_a_script_runs_with_its_arguments(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "script.py")
            script.write_text(
                "import sys, neighbour, kernel_tuner.interface\n"
                "neighbour.found = sys.argv, kernel_tuner.tune_kernel, kernel_tuner.interface.tune_kernel, __name__\n"
                "neighbour.ran = [kernel_tuner.run_kernel('add', n) for n in (1, 2)]\n"
            )
            pathlib.Path(folder, "neighbour.py").write_text("")
            with (
                mock.patch.object(sys, "argv", ["kernel_tuner.py", str(script), "--size", "7"]),
                mock.patch.object(sys, "path", ["", *sys.path]),
                contextlib.redirect_stderr(io.StringIO()) as told,
            ):
                kernel_tuner.main()
                import neighbour
        arguments, first, second, name = neighbour.found
        self.assertEqual((arguments, name), ([str(script), "--size", "7"], "__main__"))
        self.assertIsInstance(first, kernel_tuner.Replacement)
        self.assertIs(first, second)
        self.assertEqual(neighbour.ran, [["add", 1], ["add", 2]])
        self.assertEqual(told.getvalue(), "cubind.kernel_tuner: run_kernel of add is Kernel Tuner's own\n")

    def test_a_script_that_is_not_there_is_named_without_a_traceback(self):
        with (
            mock.patch.object(sys, "argv", ["kernel_tuner.py", "nosuch.py"]),
            contextlib.redirect_stderr(io.StringIO()) as told,
            self.assertRaisesRegex(SystemExit, "^2$"),
        ):
            kernel_tuner.main()
        self.assertTrue(
            told.getvalue().startswith("cubind.kernel_tuner: nosuch.py: there is no such script"),
            told.getvalue(),
        )
