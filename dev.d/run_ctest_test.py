"""What a run of tests says of its cases, and when it fails. ./dev lint runs these tests."""

import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import run_ctest

RUN = "add_test({test} {python} -c \"print('Ran 4 tests in 1s\\\\n\\\\nOK (skipped=1)')\")\n"
SKIPPED_FILE = 'add_test({test} {python} -c "raise SystemExit(77)")\n'
SKIPPED = 'add_test({test} sh -c "echo there is no browser; exit 77")\n'


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.enterContext(mock.patch.dict(os.environ, CUBIND_CASES=""))

    def run_tests(self, *arguments, python_floor=3, **kinds):
        """kinds: of files of Python tests, by their labels. Returns the exit status and the lines."""
        text = ""
        for label, kind in kinds.items():
            test = f'"service_python_client: {label}"'
            text += kind.format(test=test, python=sys.executable)
            text += f"set_tests_properties({test} PROPERTIES LABELS {label} SKIP_RETURN_CODE 77)\n"
        (self.folder / "CTestTestfile.cmake").write_text(text)
        with contextlib.redirect_stdout(io.StringIO()) as output:
            status = run_ctest.main(str(self.folder), *arguments, python_floor=python_floor)
        return status, output.getvalue().splitlines()

    def test_cases_are_told_by_label_before_the_closing_lines_of_ctest(self):
        status, lines = self.run_tests(service=RUN, unit=RUN)
        self.assertEqual(status, 0)
        (verdict,) = (i for i, line in enumerate(lines) if line.startswith("100% tests passed"))
        told = [line.split() for line in lines[:verdict]]
        self.assertIn(["service", "1"], told)
        self.assertIn(["Python", "8"], [words[:2] for words in told])
        self.assertTrue(lines[-1].startswith("Total Test time"), lines[-1])

    def test_a_label_of_which_no_test_ran_fails_the_run_with_the_reason(self):
        status, lines = self.run_tests(report=SKIPPED, unit=RUN)
        self.assertEqual(status, 1)
        self.assertIn("dev: no test of label report ran", lines)
        self.assertIn("not run: service_python_client: report: there is no browser", lines)
        self.assertIn("not run: service_python_client: unit: 1 of its 4 cases", lines)

    def test_fewer_python_cases_than_there_were_fail_a_run_of_all_python_files(self):
        self.assertEqual(self.run_tests(service=RUN, unit=RUN, python_floor=8)[0], 0)
        status, lines = self.run_tests(service=RUN, unit=SKIPPED_FILE, python_floor=8)
        self.assertEqual(status, 1)
        self.assertTrue(any("4 Python cases ran and there were 8" in line for line in lines))
        self.assertEqual(self.run_tests("-R", "unit", service=RUN, unit=RUN, python_floor=9)[0], 0)

    def test_the_counts_of_earlier_runs_are_printed_too(self):
        with mock.patch.dict(os.environ, CUBIND_CASES=str(self.folder / "cases")):
            self.run_tests(fuzz=RUN)
            told = [line.split() for line in self.run_tests(unit=RUN)[1]]
        self.assertTrue(["fuzz", "1"] in told and ["unit", "1"] in told)

    def test_a_failure_of_ctest_is_one_of_the_run(self):
        self.assertNotEqual(self.run_tests(unit="add_test({test} false)\n")[0], 0)


if __name__ == "__main__":
    unittest.main()
