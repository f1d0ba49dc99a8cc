"""What a run of tests says of its cases, and when it fails. ./dev lint runs these tests."""

import contextlib
import io
import os
import pathlib
import re
import sys
import tempfile
import unittest
from unittest import mock

import run_ctest

PROGRAM = """
import unittest
class Case(unittest.TestCase):
    def test_runs(self):
        pass
    @unittest.skipIf({skips}, "there's no moon")
    def test_may_be_left_out(self):
        'A sentence.'
unittest.main()
"""
SKIPPED = 'add_test({test} sh -c "echo there is no browser; exit 77")\n'


def python(skips):
    return f"add_test({{test}} {sys.executable} -c [==[{PROGRAM.format(skips=skips)}]==] --verbose Case)\n"


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.enterContext(mock.patch.dict(os.environ, CUBIND_CASES=""))

    def run_tests(self, **kinds):
        """kinds: of tests, by their labels. Returns the exit status and the lines."""
        text = ""
        for label, kind in kinds.items():
            text += kind.format(test=f'"test of {label}"')
            text += f'set_tests_properties("test of {label}" PROPERTIES LABELS {label} SKIP_RETURN_CODE 77)\n'
        (self.folder / "CTestTestfile.cmake").write_text(text)
        with contextlib.redirect_stdout(io.StringIO()) as output:
            status = run_ctest.main(str(self.folder))
        return status, output.getvalue().splitlines()

    def test_cases_are_told_by_label_before_the_closing_lines_of_ctest(self):
        status, lines = self.run_tests(service=python(False), unit=python(True))
        self.assertEqual(status, 0)
        (verdict,) = (i for i, line in enumerate(lines) if line.startswith("100% tests passed"))
        self.assertIn(["service", "1"], [line.split() for line in lines[:verdict]])
        self.assertIn("not run: test of unit: test_may_be_left_out: there's no moon", lines[:verdict])
        self.assertTrue(lines[-1].startswith("Total Test time"), lines[-1])

    def test_a_label_of_which_no_test_ran_fails_the_run_with_the_reason(self):
        status, lines = self.run_tests(report=SKIPPED, unit=python(False))
        self.assertEqual(status, 1)
        self.assertIn("dev: no test of label report ran", lines)
        self.assertIn("not run: test of report: there is no browser", lines)

    def test_more_than_five_skipped_cases_fail_the_run(self):
        kinds = {f"label{number}": python(True) for number in range(5)}
        self.assertEqual(self.run_tests(**kinds)[0], 0)
        status, lines = self.run_tests(**kinds, one_more=python(True))
        self.assertEqual(status, 1)
        self.assertIn("dev: 6 cases were skipped; at most 5 may be", lines)

    def test_the_counts_of_earlier_runs_are_printed_too(self):
        with mock.patch.dict(os.environ, CUBIND_CASES=str(self.folder / "cases")):
            self.run_tests(fuzz=python(False))
            told = [line.split() for line in self.run_tests(unit=python(False))[1]]
        self.assertTrue(["fuzz", "1"] in told and ["unit", "1"] in told)

    def test_a_failure_of_ctest_is_one_of_the_run(self):
        self.assertNotEqual(self.run_tests(unit="add_test({test} false)\n")[0], 0)


# Raise it with new cases; lower it only in the commit that removes some.
PYTHON_CASES = 642


class PythonCases(unittest.TestCase):
    def test_there_are_no_fewer_than_before(self):
        root = pathlib.Path(__file__).resolve().parent.parent
        files = [
            file
            for folder in ("tests/service/python", "bench")
            for file in (root / folder).rglob("*_test.py")
        ]
        cases = sum(len(re.findall(r"^    def test_", file.read_text(), re.M)) for file in files)
        self.assertGreaterEqual(cases, PYTHON_CASES)


if __name__ == "__main__":
    unittest.main()
