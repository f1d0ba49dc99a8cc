"""bench/field: which programs it draws, what it makes of their ends, and whether its checks can fail."""

import argparse
import contextlib
import io
import os
import pathlib
import signal
import sys
import tempfile
import unittest
import unittest.mock

import cubind.triton
import draw
import outcome
import process
import running

field = running.bench("field")

# What python -m cubind.triton does, as far as the bench can see it.
STUB = """
import os, runpy, sys
sys.argv = sys.argv[1:]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    assert os.environ["CUBIND_REPORT"] == "1"
    print("cubind.triton: __main__.add: asked 2, served 1, tuning 0", file=sys.stderr)
    print("cubind.triton: __main__.add: 1 times Triton's own: it was not tuned within 60 s", file=sys.stderr)
    print("cubind.triton: other.scale: asked 1, served 1, tuning 0", file=sys.stderr)
"""
# As pytest 9.2 writes it.
JUNIT = """<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite name="pytest">
<testcase classname="tests.ops.test_a" name="test_good[1-x]" time="0.1" />
<testcase classname="tests.ops.test_a.TestIn" name="test_bad[a::b]"><failure message="assert 0&#10; + more">t</failure></testcase>
<testcase classname="tests.ops.test_a" name="test_left"><skipped message="x">t</skipped></testcase>
<testcase time="0.000" /></testsuite></testsuites>"""
NOT_COLLECTED = """<testsuites><testsuite><testcase classname="" name="tests.ops.test_a">
<error message="collection failure">ImportError</error></testcase></testsuite></testsuites>"""


def kernel(**own):
    return {"asked": 1, "served": 0 if own else 1, "tuning": 0, "own": own}


def run(**change):
    """A program without a fault, but for the change."""
    kernels = {f"k{i}": kernel() for i in range(4)} | {"hooked": kernel(hooks=1)}
    made = {"suite": "fla", "program": "test_a.py", "tests": outcome.counted(passed=3), "failed": {}}
    return made | {"is_cut": False, "kernels": kernels} | change


class Draw(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def make(self, *files):
        for file in files:
            path = self.root / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("import pytest" if "attention" in file else "")

    def names(self, suite):
        return [program.name for program in draw.SUITES[suite](self.root)]

    def test_a_tutorial_with_tests_runs_as_both(self):
        self.make(*draw.TUTORIALS)
        self.assertEqual(len(self.names("tutorials")), len(draw.TUTORIALS) + 1)
        self.assertIn("06-fused-attention.py (pytest)", self.names("tutorials"))

    def test_a_tutorial_that_is_missing_is_an_error(self):
        self.make(*draw.TUTORIALS[1:])
        self.assertRaises(FileNotFoundError, self.names, "tutorials")

    def test_six_operators_of_layers_are_drawn(self):
        for name in "hgfedcba":
            self.make(f"tests/ops/test_{name}.py", *([] if name == "b" else [f"fla/layers/{name}.py"]))
        self.assertEqual(self.names("fla"), [f"test_{name}.py" for name in "acdefg"])

    def test_operators_of_liger_are_drawn(self):
        drawn = ["test_geglu.py", "test_rope.py"]
        others = ["test_monkey_patch.py", "test_cutedsl_rope.py", "test_utils.py"]
        self.make(*(f"test/transformers/{name}" for name in drawn + others))
        self.assertEqual(self.names("liger"), drawn)


class Outcome(unittest.TestCase):
    def read(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write(text)
            file.flush()
            return outcome.tests(file.name, "test_a")

    def test_tests_are_counted_without_the_interrupted_one(self):
        counts, failed = self.read(JUNIT)
        self.assertEqual(counts, outcome.counted(passed=1, failed=1, skipped=1))
        self.assertEqual(failed, {"TestIn::test_bad[a::b]": "assert 0"})

    def test_a_file_that_is_not_collected_is_the_test_without_a_name(self):
        self.assertEqual(self.read(NOT_COLLECTED)[1], {"": "collection failure"})

    def test_the_report_of_cubind_triton_is_read(self):
        told = (
            "cubind.triton: __main__.f.<locals>.add: asked 3, served 2, tuning 1\n"
            "cubind.triton: __main__.f.<locals>.add: 4 times Triton's own: it reads tensors: a, b"
        )
        found = outcome.kernels("noise\n" + told, "02-x")
        counts = {"asked": 3, "served": 2, "tuning": 1, "own": {"reads tensors: a, b": 4}}
        self.assertEqual(found, {"02-x.f.<locals>.add": counts})
        self.assertEqual(outcome.kernels(cubind.triton.report(), "02-x"), {})
        self.assertIsNone(outcome.kernels("Segmentation fault", "02-x"))

    def faults(self, *runs):
        return outcome.summary({"programs": [*runs]})["faults"]

    def test_a_fifth_may_be_tritons_own(self):
        self.assertEqual(self.faults(run()), [])
        more = run(kernels={"hooked_too": kernel(hooks=2)})
        self.assertIn("2 of 6 autotuned kernels stay Triton's own", self.faults(run(), more)[0])

    def test_a_kernel_that_is_own_once_is_not_served(self):
        found = outcome.summary({"programs": [run(), run(kernels={"k0": kernel(late=1)})]})
        self.assertEqual(found["kernels_own"]["k0"]["own"], {"late": 1})
        self.assertEqual((found["kernels_met"], found["kernels_served"]), (5, 3))

    def test_what_fails_under_cubind_alone_is_a_fault(self):
        failing = {"failed": {"test_x": "wrong", "test_y": "wrong too"}}
        without = {"failed": {"test_y": "there too"}, "is_cut": False}
        self.assertEqual(self.faults(run(**failing, without=without)), ["test_a.py test_x: wrong"])
        (found,) = self.faults(run(**failing, without=without | {"is_cut": True}))
        self.assertIn("cut, perhaps before this test", found)

    def test_what_was_not_run_without_cubind_is_a_fault(self):
        self.assertIn("no time was left", self.faults(run(failed={"": "exit code 1"}))[0])

    def test_no_report_and_no_kernel_are_faults(self):
        told = ["test_a.py: no report of its kernels", "no autotuned kernel was met"]
        self.assertEqual(self.faults(run(kernels=None)), told)


class Process(unittest.TestCase):
    def run_text(self, text, seconds=60):
        return process.run([sys.executable, "-c", text], os.environ, "/", seconds)

    def test_a_failure_has_the_exit_code_and_the_last_line(self):
        ended = self.run_text("import sys; print('cubind.triton: x'); sys.exit('no GPU')")
        self.assertEqual(ended.as_test(), (outcome.counted(failed=1), {"": "exit code 1: no GPU"}))

    def test_a_program_that_is_cut_tells_what_it_has_done(self):
        text = (
            "import atexit, time; atexit.register(print, 'done'); print('begun', flush=True); time.sleep(60)"
        )
        ended = self.run_text(text, 2)
        self.assertTrue(ended.is_cut)
        self.assertIn("begun", ended.output)
        self.assertIn("done", ended.output)
        self.assertEqual(ended.as_test(), (outcome.counted(), {}))

    def test_processes_that_it_waits_for_at_its_end_are_interrupted_too(self):
        text = (
            "import multiprocessing as m, time\n"
            "child = m.Process(target=time.sleep, args=(100,))\n"
            "child.start()\n"
            "child.join()"
        )
        with unittest.mock.patch.object(process, "GRACE_S", 5):
            self.assertNotEqual(self.run_text(text, 1).code, -signal.SIGKILL)

    def test_one_that_does_not_end_is_killed_and_has_failed(self):
        with unittest.mock.patch.object(process, "GRACE_S", 0.2):
            ended = self.run_text("import signal, time; signal.signal(2, signal.SIG_IGN); time.sleep(60)", 2)
        self.assertEqual(ended.as_test()[0], outcome.counted(failed=1))


class Daemon:
    """Of no use to the stub."""

    address = "unix:///nowhere"


class Lane(unittest.TestCase):
    """With programs of its own and a stub of cubind.triton."""

    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.root / "stub/cubind/triton").mkdir(parents=True)
        (self.root / "stub/cubind/__init__.py").touch()
        (self.root / "stub/cubind/triton/__init__.py").touch()
        (self.root / "stub/cubind/triton/__main__.py").write_text(STUB)
        arguments = argparse.Namespace(
            seconds=300, limit=60, path=[self.root / "stub"], output=self.root / "out.json"
        )
        self.field = field.Field(arguments, {"programs": [], "left_out": []}, self.root)

    def run_program(self, text):
        file = self.root / "02-x.py"
        file.write_text(text)
        with contextlib.redirect_stdout(io.StringIO()):
            lane = field.Lane(self.field, [])
            lane.run_suite([draw.Program("tutorials", file.name, file, False)], Daemon())
        return self.field.document

    def test_the_kernels_of_a_program_are_named_by_its_file(self):
        (run,) = self.run_program("print('fine')")["programs"]
        self.assertEqual(run["tests"], outcome.counted(passed=1))
        self.assertEqual(run["kernels"]["02-x.add"]["own"], {"was not tuned within 60 s": 1})
        self.assertEqual(run["kernels"]["other.scale"]["served"], 1)

    def test_a_program_that_fails_is_run_without_cubind(self):
        document = self.run_program("import os, sys; sys.exit(os.environ.get('CUBIND') != '0' and 'wrong')")
        self.assertEqual(document["programs"][0]["without"]["failed"], {})
        self.assertIn("02-x.py : exit code 1: wrong", document["summary"]["faults"])

    def test_one_that_fails_there_too_is_no_fault(self):
        document = self.run_program("raise SystemExit('neither')")
        self.assertNotIn("neither", "".join(document["summary"]["faults"]))

    def test_without_time_it_is_left_out(self):
        self.field.until -= 300
        document = self.run_program("")
        self.assertEqual((document["programs"], document["left_out"]), ([], ["tutorials 02-x.py"]))
