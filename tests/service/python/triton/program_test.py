"""python -m cubind.triton runs a program as Python runs it."""

import os
import pathlib
import tempfile
import unittest

import triton_found  # noqa: F401  first: it looks for a Python with Triton

# isort: split
import running


class Program(unittest.TestCase):
    def run_program(self, text, *arguments, **environment):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "program.py")
            path.write_text(text)
            pathlib.Path(folder, "neighbour.py").write_text("word = 'imported'")
            command = ["-B", "-m", "cubind.triton", *(arguments or (path, "a", "-b"))]
            environment["CUBIND_EMBEDDED"] = "0"
            found = running.run_python_for_both(command, check=False, cwd="/", **environment)
            return found.stdout, found.stderr, found.returncode

    def test_a_script_runs_as_python_runs_it(self):
        text = (
            "import sys, neighbour\n"
            "from triton.runtime.autotuner import Autotuner\n"
            "print(__name__, sys.argv[1:], neighbour.word, Autotuner.run.__module__.split('.')[0])\n"
            "sys.exit(3)"
        )
        out, err, code = self.run_program(text)
        self.assertEqual((out, code), ("__main__ ['a', '-b'] imported cubind\n", 3), err)

    def test_a_module_runs_as_python_runs_it(self):
        out, err, code = self.run_program("", "-m", "json.tool", "--help")
        self.assertIn("usage: ", out, err)
        self.assertEqual(code, 0)

    def test_turned_off_it_patches_nothing(self):
        text = "from triton.runtime.autotuner import Autotuner\nprint(Autotuner.run.__module__)"
        self.assertEqual(self.run_program(text, CUBIND="0")[0], "triton.runtime.autotuner\n")

    def test_a_variable_that_cannot_be_ends_it_with_a_sentence(self):
        told = self.run_program("print('runs')", CUBIND_TRITON_CONTENTS="5")
        self.assertEqual(told, ("", 'cubind.triton: CUBIND_TRITON_CONTENTS: "5" is neither 0 nor 1\n', 1))

    def test_without_a_script_it_says_how_to_call_it(self):
        for arguments in (["-m"], ["bake"], ["record", "-o", "kernels"]):
            _, err, code = self.run_program("", *arguments)
            self.assertIn("usage: python -m cubind.triton", err)
            self.assertEqual(code, 2, arguments)

    def test_a_record_without_a_file_is_refused_in_the_programs_name(self):
        _, err, code = self.run_program("", "record", "train.py")
        self.assertIn("cubind.triton: record: error: the following arguments are required: -o", err)
        self.assertEqual(code, 2)

    def test_help_is_no_error(self):
        for command in ([], ["record"], ["bake"]):
            out, err, code = self.run_program("", *command, "--help")
            self.assertIn("  bake     has the daemon compile", out)
            self.assertEqual((err, code), ("", 0))

    def test_a_script_that_is_not_there_is_named_without_a_traceback(self):
        for arguments in (["nosuch.py"], ["recrod", "-o", "kernels", "train.py"]):
            _, err, code = self.run_program("", *arguments)
            self.assertTrue(err.startswith(f"cubind.triton: {arguments[0]}: there is no such script"), err)
            self.assertEqual(code, 2)

    def test_a_table_without_a_gpu_says_where_to_run_it(self):
        text = (
            "from cubind.triton import Table\n"
            "table = Table(None, 'name.json', [1], lambda *_: None, lambda size: {}, [])\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "table.py")
            path.write_text(text)
            for command, *file in (["tune"], ["check", "name.json"]):
                _, err, code = self.run_program("", "table", command, str(path), *file)
                self.assertTrue(err.startswith("cubind.triton: device: Triton finds no GPU here"), err)
                self.assertEqual(code, 1)

    def test_another_version_of_triton_is_refused_and_the_program_runs(self):
        text = "import triton\nprint('runs')"
        with tempfile.TemporaryDirectory() as folder:
            fake = pathlib.Path(folder, "triton")
            fake.mkdir()
            (fake / "__init__.py").write_text("__version__ = '9.1.0'")
            path = f"{folder}:{os.environ.get('PYTHONPATH', '')}"
            out, err, code = self.run_program(text, PYTHONPATH=path)
        self.assertEqual((out, code), ("runs\n", 0))
        self.assertIn("Triton 9.1.0 is not supported: the newest that is known is 3.9", err)
