"""Files of other tuners: what is read of them, and what is refused by name. They are of the form that Triton,
Kernel Tuner, T4 and serving projects write."""

import contextlib
import io
import json
import pathlib
import runpy
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import triton_found  # noqa: F401  first: it looks for a Python with Triton

# isort: split

CONFIG = {"kwargs": {"BLOCK": 128}, "num_warps": 4, "num_ctas": 1, "num_stages": 3, "maxnreg": None, "pre_hook": None,
          "ir_override": None}  # fmt: skip
KERNEL_TUNER = {
    "schema_version": "1.1.0",
    "device_name": "A GPU",
    "kernel_name": "convolution",
    "problem_size": [4096, 4096],
    "tune_params_keys": ["block_size_x", "block_size_y"],
    "tune_params": {"block_size_x": [16, 32], "block_size_y": [1]},
    "objective": "time",
    "cache": {
        "16,1": {"block_size_x": 16, "block_size_y": 1, "time": 3.5, "times": [3.5], "compile_time": 900.0},
        "32,1": {"block_size_x": 32, "block_size_y": 1, "time": "RuntimeFailedConfig"},
    },
}
T4 = {
    "schema_version": "1.0.0",
    "results": [
        {
            "configuration": {"block_size_x": 16, "use_shmem": True},
            "times": {"runtimes": [12.5]},
            "invalidity": "correct",
            "correctness": 1,
            "measurements": [{"name": "time", "value": 12.5, "unit": "ms"}],
            "objectives": ["time"],
        },
        {"configuration": {"block_size_x": 64}, "times": {}, "invalidity": "compile", "correctness": 0},
    ],
}
PROJECT = {"triton_version": "3.6.0", "64": {"BLOCK_SIZE_M": 16, "num_warps": 4}, "1": {"BLOCK_SIZE_M": 32}}


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def file(self, content, name="found.json"):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def run_import(self, *files):
        """Exit code and output of `python -m cubind.triton table import`, and the rows of its file."""
        out, said = self.folder / "out.json", io.StringIO()
        command = ["cubind.triton", "table", "import", *map(str, files), "-o", str(out)]
        with (
            unittest.mock.patch.object(sys, "argv", command),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
            self.assertRaises(SystemExit) as end,
        ):
            runpy.run_module("cubind.triton", run_name="__main__")
        rows = json.loads(out.read_text())["rows"] if out.exists() else []
        return end.exception.code, said.getvalue(), rows

    def read(self, content, name="found.json"):
        code, said, rows = self.run_import(self.file(content, name))
        self.assertEqual(code, 0, said)
        return [(each["values"], each["time_us"]) for each in rows]

    def refused(self, content, message, name="found.json"):
        code, said, rows = self.run_import(self.file(content, name))
        self.assertEqual((code, rows), (1, []))
        self.assertRegex(said, message)


class Read(Case):
    def test_of_triton(self):
        slow = CONFIG | {"kwargs": {"BLOCK": 256, "EVEN": True}, "maxnreg": 64}
        inf = float("inf")
        content = {"key": [1024, "torch.float32"], "configs_timings": [
            [CONFIG, [0.5, 0.4, 0.6]], [slow, 0.25], [CONFIG, [inf, inf, inf]]]}  # fmt: skip
        options = {"num_warps": 4, "num_ctas": 1, "num_stages": 3}
        self.assertEqual(
            self.read(content, "scale.autotune.json"),
            [
                ({"BLOCK": 128, **options}, 500.0),
                ({"BLOCK": 256, "EVEN": True, **options, "maxnreg": 64}, 250.0),
                ({"BLOCK": 128, **options}, None),
            ],
        )

    def test_of_kernel_tuner(self):
        self.assertEqual(
            self.read(KERNEL_TUNER),
            [
                ({"block_size_x": 16, "block_size_y": 1}, 3500.0),
                ({"block_size_x": 32, "block_size_y": 1}, None),
            ],
        )

    def test_of_t4(self):
        self.assertEqual(
            self.read(T4), [({"block_size_x": 16, "use_shmem": True}, 12500.0), ({"block_size_x": 64}, None)]
        )

    def test_of_a_project(self):
        self.assertEqual(
            self.read(PROJECT), [({"BLOCK_SIZE_M": 32}, None), ({"BLOCK_SIZE_M": 16, "num_warps": 4}, None)]
        )


class Refused(Case):
    def test_what_is_no_json(self):
        for content, message in (
            ('{"1": {"BLOCK": NaN}}', "NaN is no number of JSON"),
            ('{"1": {"BLOCK": Infinity}}', "Infinity is no number of JSON"),
            ('{"1": {"BLOCK": -Infinity}}', "-Infinity is no number of JSON"),
            ('{"1": {"BLOCK": 1e999}}', "1e999 is above the largest number"),
            ('{"1": {"BLOCK": 1}, "1": {"BLOCK": 2}}', "'1' is given twice"),
            ('{"1": {"BLOCK": 1, "BLOCK": 2}}', "'BLOCK' is given twice"),
            ('{"1": ' + "[" * 100000, "nested too deep"),
            ("{'1': {'BLOCK': 1}}", "not JSON"),
            ("__import__('os')", "not JSON"),
            ("[1]", "not an object"),
        ):
            with self.subTest(content[:40]):
                self.refused(content, f"found.json.*{message}")

    def test_what_no_row_is(self):
        for content, message in (
            ({"0": {"BLOCK": 1}}, "/0: not a size"),
            ({"M": {"BLOCK": 1}}, "/M: not a size"),
            ({"1": {}}, "/1: not an object of values"),
            ({"1": {"BLOCK": [1]}}, "/1/BLOCK: neither a number"),
            ({"1": {"a b": 1}}, "/1/a b: not a name"),
        ):
            with self.subTest(content):
                self.refused(content, message)

    def test_of_triton(self):
        for item, message in (
            ([CONFIG], "/configs_timings/0: not a configuration and its timings"),
            ([CONFIG | {"kwargs": {"BLOCK": float("inf")}}, 1.0], "kwargs/BLOCK: inf is no number"),
            ([CONFIG | {"ir_override": "a.ttir"}, 1.0], "ir_override: not known"),
            ([CONFIG | {"new_option": 1}, 1.0], "new_option: not known"),
            ([CONFIG, 0], "/1: not a time"),
        ):
            with self.subTest(message):
                self.refused({"key": [], "configs_timings": [item]}, message, "scale.autotune.json")
        text = json.dumps({"key": [], "configs_timings": [[CONFIG, float("nan")]]})
        self.refused(text, "NaN is no number", "scale.autotune.json")

    def test_of_kernel_tuner_and_t4(self):
        without = KERNEL_TUNER | {"cache": {"16,1": {"block_size_x": 16, "time": 1.0}}}
        self.refused(without, "/cache/16,1: not an object with time and block_size_x, block_size_y")
        self.refused(KERNEL_TUNER | {"tune_params_keys": "x"}, "/tune_params_keys: not a list")
        self.refused(T4 | {"schema_version": "2.0.0"}, "/schema_version: T4 of version 1")
        other = json.loads(json.dumps(T4))
        other["results"][0]["measurements"][0]["unit"] = "cycles"
        self.refused(other, "/results/0/measurements/0/unit: none of s, ms, us, ns")


class Command(Case):
    def test_files_of_all_forms_are_gathered(self):
        _, said, rows = self.run_import(
            self.file(KERNEL_TUNER, "a.json"), self.file(T4, "b.json"), self.file(PROJECT)
        )
        self.assertIn("6 configurations, 2 of them with a reported time", said)
        self.assertEqual((len(rows), rows[0]["source"]), (6, "a.json /cache/16,1"))
        self.assertEqual(json.loads((self.folder / "out.json").read_text())["evidence"], "reported")

    def test_a_reader_that_has_ended_ends_the_command_without_a_word(self):
        out = self.folder / "out.json"
        words = f"import {self.file(T4)} -o {out}"
        command = f"{{ sleep 0.3; {sys.executable} -m cubind.triton table {words}; echo $? >&2; }} | true"
        told = subprocess.run(["sh", "-c", command], capture_output=True, text=True).stderr
        self.assertEqual(told, "141\n")
        self.assertTrue(out.exists())

    def test_a_wrong_file_is_named_and_nothing_written(self):
        wrong = self.file('{"1": {"BLOCK": NaN}}', "wrong.json")
        code, said, _ = self.run_import(self.file(T4, "b.json"), wrong)
        self.assertEqual(code, 1)
        self.assertRegex(said, "cubind.triton: .*wrong.json: not JSON: NaN is no number of JSON\n")
        self.assertFalse((self.folder / "out.json").exists())
