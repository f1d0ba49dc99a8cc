"""Files of other tuners: what is read of them, and what is refused by name. They are of the form that Triton,
Kernel Tuner, T4 and serving projects write."""

import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import triton_found  # noqa: F401  first: it looks for a Python with Triton

# isort: split
import cubind
from cubind import _strict_json
from cubind.triton import _project_file, _reported

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

    def read(self, content, name="found.json"):
        return [(each.values, each.time_us) for each in _reported.read_others(self.file(content, name))]

    def refused(self, content, message, name="found.json"):
        with self.assertRaisesRegex(cubind.InvalidArgumentError, message):
            _reported.read_others(self.file(content, name))


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

    def test_what_import_writes_is_read_again(self):
        found = _reported.read_others(self.file(KERNEL_TUNER))
        _reported.write(self.folder / "reported.json", found)
        self.assertEqual(_reported.read(self.folder / "reported.json"), found)
        self.assertEqual(json.loads((self.folder / "reported.json").read_text())["evidence"], "reported")
        self.assertEqual(found[0].source, "found.json /cache/16,1")


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

    def test_a_file_of_import_that_says_more_than_reported(self):
        path = self.folder / "reported.json"
        _reported.write(path, [])
        for change, message in (
            ({"evidence": "measured"}, "not 'reported'"),
            ({"format": "x"}, "its format is not"),
            ({"rows": [{"values": {"BLOCK": 1}}]}, "/rows/0: not an object with source"),
        ):
            with self.assertRaisesRegex(cubind.InvalidArgumentError, message):
                _reported.read(self.file(json.loads(path.read_text()) | change, "changed.json"))

    def test_numbers_and_names_of_strict_json(self):
        self.assertEqual(
            _strict_json.loads('{"a": [1, 2.5, true, null, "x"]}'), {"a": [1, 2.5, True, None, "x"]}
        )
        with self.assertRaisesRegex(ValueError, "-Infinity"):
            _strict_json.loads("-Infinity", infinity=True)


class Written(Case):
    def test_a_project_file_is_written_in_order_and_read_again(self):
        path = self.folder / "E=8,N=14336,device_name=NVIDIA_H200.json"
        _project_file.write(path, {64: {"BLOCK": 2, "FLAG": True}, 1: {"BLOCK": 1}})
        self.assertEqual(path.read_text().split()[1], '"1":')
        self.assertEqual(_project_file.read(path), {1: {"BLOCK": 1}, 64: {"BLOCK": 2, "FLAG": True}})
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o666 & ~_project_file._umask())

    def test_a_write_that_fails_leaves_the_file_as_it_was(self):
        path = self.file(PROJECT)
        before = path.read_text()
        with self.assertRaises(ValueError):
            _project_file.write(path, {1: {"BLOCK": float("nan")}})
        with unittest.mock.patch.object(os, "replace", side_effect=OSError), self.assertRaises(OSError):
            _project_file.write(path, {1: {"BLOCK": 1}})
        self.assertEqual((path.read_text(), os.listdir(self.folder)), (before, ["found.json"]))


class Command(Case):
    def run_import(self, *files):
        command = [
            sys.executable,
            "-m",
            "cubind.triton",
            "table",
            "import",
            *files,
            "-o",
            self.folder / "out.json",
        ]
        return subprocess.run(command, capture_output=True, text=True)

    def test_files_of_all_forms_are_gathered(self):
        result = self.run_import(
            self.file(KERNEL_TUNER, "a.json"), self.file(T4, "b.json"), self.file(PROJECT)
        )
        self.assertIn("6 configurations, 2 of them with a reported time", result.stdout, result.stderr)
        self.assertEqual(len(_reported.read(self.folder / "out.json")), 6)

    def test_a_wrong_file_is_named_and_nothing_written(self):
        result = self.run_import(self.file(T4, "b.json"), self.file('{"1": {"BLOCK": NaN}}', "wrong.json"))
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "cubind.triton: .*wrong.json: not JSON: NaN is no number of JSON\n")
        self.assertFalse((self.folder / "out.json").exists())


if __name__ == "__main__":
    unittest.main()
