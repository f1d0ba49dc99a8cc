"""Tables of configurations: rows that are tuned by a real daemon, whose agent compiles with a real Triton and
plays recorded times, and the files that come out."""

import argparse
import contextlib
import io
import json
import os
import pathlib
import stat
import sys
import tempfile
import time
import unittest
import unittest.mock

import triton_grpc_found  # noqa: F401  first: it looks for a Python with Triton and gRPC

# isort: split
import cubind
import running
import triton
import triton_replaying as replaying
import triton_stub as stub
from cubind import _whole_file
from cubind.triton import (
    Table,
    _project_file,
    _reported,
    _row_questions,
    _rows,
    _table_command,
)
from cubind.triton import table as table_module
from fake_daemon import FakeDaemon
from triton_stub import grid, scale

replaying.require()

DEFAULT = {"BLOCK": 128, "num_warps": 1}
WINNER = {"BLOCK": 256, "num_warps": 1}
OTHER = {"BLOCK": 512, "num_warps": 1}
KERNEL = triton.jit(scale)


def call(kernel, size, values):
    kernel[grid](stub.Tensor((size,)), stub.Tensor((size,)), size, 2.0)


def table_of(**others):
    fields = {
        "kernel": KERNEL,
        "file": "E=8,N=16,device_name={device_name}.json",
        "rows": [1000, 2000],
        "call": call,
        "default": lambda size: DEFAULT,
        "candidates": [WINNER],
        "size": "N",
    }
    return Table(**fields | others)


table = table_of()  # of this module, for the command line


def spec_of(of, size, group, launch=0):
    return stub.specs_of_row(of, size, group)[launch]


class Case(unittest.TestCase):
    def setUp(self):
        stub.start()
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def serve(self, *recorded):
        """A daemon whose table has the times of each group of configurations: by the table, the size, the
        group, and the launch if there are several."""
        specs = [(spec_of(of, size, group, *launch), times) for of, size, group, times, *launch in recorded]
        self.client = replaying.serve(self, *specs)

    def rows(self, of=table, tune=True):
        return _rows.Rows(of, self.client, tune, running.PATIENCE)

    def run_command(self, *arguments):
        """Its exit code and what it printed."""
        printed = io.StringIO()
        with (
            unittest.mock.patch.object(cubind, "connect", lambda: contextlib.nullcontext(self.client)),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            code = _table_command.main([str(each) for each in arguments])
        return code, printed.getvalue()

    def files(self):
        return [path.name for path in self.folder.iterdir()]


TABLE = "table_test:table"


class Command(Case):
    def serve_two_rows(self):
        """At 1000 the candidate wins, at 2000 it ties."""
        group = [DEFAULT, WINNER]
        self.serve((table, 1000, group, (20.0, 10.0)), (table, 2000, group, (10.0, 9.999)))

    def test_the_tuned_file_has_the_name_and_the_form_that_the_project_reads(self):
        self.serve_two_rows()
        code, printed = self.run_command("tune", TABLE, "-o", self.folder)
        self.assertEqual(code, 0, printed)
        (name,) = self.files()
        self.assertRegex(name, r"^E=8,N=16,device_name=[^ {}]+\.json$")
        self.assertEqual(_project_file.read(self.folder / name), {1000: WINNER, 2000: DEFAULT})
        self.assertRegex(
            printed, r" 1000 +20\.0\d +10\.0\d  10\.\d+ to 10\.\d+ +2\.00  BLOCK=256,num_warps=1 \(rep"
        )
        self.assertRegex(printed, r" 2000 +10\.0\d +-  - +tie  the default stays")
        self.assertIn("2 rows, 1 of them tuned", printed)

    def test_export_writes_what_is_known_and_measures_nothing(self):
        self.serve_two_rows()
        code, printed = self.run_command("export", TABLE, "-o", self.folder)
        self.assertEqual((code, self.files()), (1, []))
        self.assertIn("no acceptable record answers N=1000", printed)
        self.run_command("tune", TABLE, "-o", self.folder, "--rows", "1000")
        (name,) = self.files()
        (self.folder / name).unlink()
        code, printed = self.run_command("export", TABLE, "-o", self.folder, "--rows", "1000")
        self.assertEqual((code, self.files()), (0, [name]), printed)
        self.assertEqual(_project_file.read(self.folder / name), {1000: WINNER})

    def test_export_needs_no_gpu(self):
        self.serve_two_rows()
        self.run_command("tune", TABLE, "-o", self.folder, "--rows", "1000")
        command = ("export", TABLE, "-o", self.folder / "there", "--rows", "1000")
        code, printed = self.run_command(*command, "--device", "nvidia-b300")
        self.assertEqual(code, 1)
        self.assertIn("name one GPU by --device: the daemon has measured on replay-", printed)
        triton.runtime.driver.set_active(None)  # of Triton's own there is none here
        code, printed = self.run_command(*command)
        self.assertEqual(code, 0, printed)
        (file,) = (self.folder / "there").iterdir()
        self.assertIn("device_name=NVIDIA_H200", file.name)
        self.assertEqual(_project_file.read(file), {1000: WINNER})

    def test_no_file_is_written_where_no_row_wins(self):
        self.serve_two_rows()
        code, printed = self.run_command("tune", TABLE, "-o", self.folder, "--rows", "2000")
        self.assertEqual((code, self.files()), (0, []))
        self.assertIn("no row wins", printed)

    def test_check_names_the_rows_that_lose_on_this_gpu(self):
        self.serve(
            (table, 1000, [WINNER, DEFAULT], (10.0, 20.0)),
            (table, 2000, [OTHER, DEFAULT], (30.0, 20.0)),
        )
        file = self.folder / "present.json"
        _project_file.write(file, {500: DEFAULT, 1000: WINNER, 2000: OTHER})
        code, printed = self.run_command("check", TABLE, file)
        self.assertEqual(code, 1, printed)
        self.assertIn("/500: is the default", printed)
        self.assertRegex(printed, r"/1000: holds: 10\.0\d us")
        self.assertRegex(printed, r"/2000: loses: 30\.\d+ us, the default takes 20\.0\d us")
        self.assertEqual(self.run_command("check", TABLE, file, "--rows", "1000")[0], 0)
        code, printed = self.run_command("check", TABLE, file, "--rows", "7")
        self.assertIn("/7: has no such row", printed)

    def test_reported_configurations_are_candidates(self):
        self.serve((table, 1000, [DEFAULT, WINNER, OTHER], (20.0, 10.0, 5.0)))
        reported = self.folder / "reported.json"
        _reported.write(reported, [_reported.Reported("elsewhere", OTHER, 1.0)])
        self.assertEqual(_reported.read(reported), [_reported.Reported("elsewhere", OTHER, 1.0)])
        out = self.folder / "out"
        code, printed = self.run_command("tune", TABLE, "-o", out, "--rows", "1000", "--reported", reported)
        self.assertEqual(code, 0, printed)
        self.assertRegex(printed, r" 1000 +20\.0\d +5\.0\d ")
        (name,) = out.iterdir()
        self.assertEqual(_project_file.read(name), {1000: OTHER})

    def test_a_file_of_import_that_says_more_than_reported_is_refused(self):
        path = self.folder / "reported.json"
        _reported.write(path, [])
        written = json.loads(path.read_text())
        for change, message in (
            ({"evidence": "measured"}, "not 'reported'"),
            ({"format": "x"}, "its format is not"),
            ({"rows": [{"values": {"BLOCK": 1}}]}, "/rows/0: not an object with source"),
        ):
            path.write_text(json.dumps(written | change))
            with self.assertRaisesRegex(cubind.InvalidArgumentError, message):
                _reported.read(path)


class Written(Case):
    def test_a_project_file_is_written_in_order_and_read_again(self):
        path = self.folder / "E=8,N=14336,device_name=NVIDIA_H200.json"
        _project_file.write(path, {64: {"BLOCK": 2, "FLAG": True}, 1: {"BLOCK": 1}})
        self.assertEqual(path.read_text().split()[1], '"1":')
        self.assertEqual(_project_file.read(path), {1: {"BLOCK": 1}, 64: {"BLOCK": 2, "FLAG": True}})
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o666 & ~_whole_file._umask())

    def test_a_write_that_fails_leaves_the_file_as_it_was(self):
        path = self.folder / "found.json"
        _project_file.write(path, {1: {"BLOCK": 1}})
        before = path.read_text()
        with self.assertRaises(ValueError):
            _project_file.write(path, {1: {"BLOCK": float("nan")}})
        with unittest.mock.patch.object(os, "replace", side_effect=OSError), self.assertRaises(OSError):
            _project_file.write(path, {1: {"BLOCK": 2}})
        self.assertEqual((path.read_text(), self.files()), (before, ["found.json"]))


class Measured(Case):
    def test_values_that_arguments_depend_on_are_compared_by_their_times(self):
        asked = []

        def padded(kernel, size, values):
            asked.append(dict(values))
            call(kernel, size + values["BLOCK"], values)

        of = table_of(call=padded, by=["BLOCK"])
        alone = _row_questions.padded([WINNER])
        self.serve((of, 1000, [DEFAULT], (20.0, 30.0)), (of, 1000, [WINNER], (8.0, 5.0)))
        asked.clear()
        row = self.rows(of).row(1000, DEFAULT, [WINNER])
        self.assertEqual(asked, [{"BLOCK": 128}, {"BLOCK": 256}])
        self.assertEqual(alone[1], {"BLOCK": 256, "num_warps": 2})
        self.assertEqual((row.best, row.wins), (WINNER, True), row)
        self.assertAlmostEqual(row.gain, 20 / 8, 1)  # 5.0 is of the one that was only added

    def test_the_times_of_several_launches_are_added(self):
        def twice(kernel, size, values):
            call(kernel, size, values)
            call(kernel, 2 * size, values)

        of, group = table_of(call=twice), [DEFAULT, WINNER, OTHER]
        self.serve((of, 1000, group, (20.0, 10.0, 15.0), 0), (of, 1000, group, (20.0, 30.0, 15.0), 1))
        row = self.rows(of).row(1000, DEFAULT, [WINNER, OTHER])
        self.assertEqual((row.best, row.wins), (OTHER, True), row)
        self.assertAlmostEqual(row.first_time.us, 40, 1)
        self.assertAlmostEqual(row.best_time.us, 30, 1)
        low, high = row.best_time.interval_us
        self.assertTrue(low <= row.best_time.us <= high < 30.1)
        self.assertEqual(
            row.best_time.evidence, "unverified"
        )  # in the first launch it is far from the winner

    def test_a_default_that_is_too_slow_for_the_finals_has_the_time_of_its_trial(self):
        group = [DEFAULT, WINNER]
        self.serve((table, 1000, group, (900.0, 10.0)))
        row = self.rows().row(1000, DEFAULT, [WINNER])
        self.assertAlmostEqual(row.first_time.us, 900, -1)
        self.assertTrue(row.wins)

    def test_two_sizes_of_the_arguments_are_two_problems(self):
        group = [DEFAULT, WINNER]
        small, large = (spec_of(table, size, group) for size in (1008, 2016))
        self.assertNotEqual(small.name, large.name)
        self.assertEqual(small.files.keys(), large.files.keys())
        self.assertEqual((small.problem, large.problem), ({"N": 1008}, {"N": 2016}))

    def test_a_row_that_cannot_be_measured_says_why(self):
        self.serve()

        def broken(kernel, size, values):
            raise ZeroDivisionError("at this size")

        for of, first, why in (
            (table_of(call=broken), DEFAULT, "cannot be called: ZeroDivisionError: at this size"),
            (table_of(call=lambda *_: None), DEFAULT, "is not launched by the table's call"),
            (table, {"BLOCK": 128, "num_wraps": 4}, "num_wraps"),
            (table_of(candidates=[]), {"BLOCK": 100}, "no TTIR|cannot be compiled"),
        ):
            with self.subTest(why):
                row = self.rows(of).row(1000, first, [WINNER])
                self.assertRegex(row.why, why)
                self.assertFalse(row.wins)


class WithoutAnswer(Case):
    def test_a_row_that_takes_too_long_says_so_and_the_next_one_is_asked_for(self):
        daemon = self.enterContext(FakeDaemon(lambda request: time.sleep(3)))
        self.client = self.enterContext(cubind.connect(daemon.address))
        rows = _rows.Rows(table, self.client, True, 0.5)
        for size in (1000, 2000):
            row = rows.row(size, DEFAULT, [WINNER])
            self.assertEqual(row.why, "a launch was not tuned within 0.5 s (--timeout)")
        self.assertEqual(len({request.kernel for request in daemon.asked}), 2)

    def test_export_before_a_measurement_says_what_to_do(self):
        client = unittest.mock.Mock(status=lambda: {"devices": []})
        with self.assertRaisesRegex(cubind.FailedPreconditionError, "run `table tune` first"):
            _table_command._gpu_of_daemon(client, None)

    def test_without_a_daemon_the_command_ends(self):
        daemon = self.enterContext(FakeDaemon())
        self.client = self.enterContext(cubind.connect(daemon.address))
        daemon.__exit__()
        code, printed = self.run_command("tune", TABLE, "-o", self.folder)
        self.assertEqual((code, self.files()), (1, []))
        self.assertIn("no daemon answers there", printed)


class Rows(unittest.TestCase):
    def row(self, size, first_us, best_us, high_us=None):
        interval = (best_us, high_us or best_us)
        time = _rows.Time(best_us, interval, "measured")
        return _rows.Row(size, DEFAULT, _rows.Time(first_us, None, "measured"), WINNER, time)

    def test_a_row_wins_by_more_than_the_tie_margin_and_its_interval(self):
        for first_us, best_us, high_us, wins in (
            (10.0, 9.0, 9.5, True),
            (10.0, 9.995, 9.996, False),
            (10.0, 9.0, 10.5, False),
            (10.0, 10.0, 10.0, False),
        ):
            with self.subTest(best_us=best_us, high_us=high_us):
                self.assertEqual(self.row(1, first_us, best_us, high_us).wins, wins)

    def test_rows_that_win_nothing_are_left_out_or_hold_the_default(self):
        rows = [self.row(1, 10.0, 5.0), self.row(2, 10.0, 9.999), _rows.Row(4, DEFAULT, why="a timeout")]
        self.assertEqual(_table_command.written_rows(rows, True), {1: WINNER, 2: DEFAULT, 4: DEFAULT})
        self.assertEqual(_table_command.written_rows(rows, False), {1: WINNER})
        self.assertEqual(_table_command.written_rows(rows[1:], True), {})


class Times(unittest.TestCase):
    def test_the_interval_of_a_median_holds_the_middle_samples(self):
        time = _rows._time_of([float(value) for value in range(101)], "measured")
        self.assertEqual((time.us, time.interval_us), (50.0, (40.0, 61.0)))
        self.assertEqual(_rows._time_of([3.0], "measured").interval_us, (3.0, 3.0))
        total = _rows._sum([time, _rows.Time(7.0, None, "measured")])
        self.assertEqual((total.us, total.interval_us), (57.0, (47.0, 68.0)))


class Loaded(unittest.TestCase):
    def test_a_table_is_found_in_a_module_or_a_file(self):
        for reference in ("table_test:table", "table_test", __file__, f"{__file__}:table"):
            self.assertEqual(table_module.load(reference).file, table.file)
        for reference, cause in (
            ("table_test:nothing", "has no cubind.triton.Table named nothing"),
            ("no_such_table.py", "there is no such file"),
            ("no_such.table:table", "there is no such module"),
        ):
            with self.assertRaisesRegex(cubind.InvalidArgumentError, cause):
                table_module.load(reference)

    def test_what_a_module_of_ones_own_misses_is_its_own_error(self):
        with (
            tempfile.TemporaryDirectory() as folder,
            unittest.mock.patch.object(sys, "path", [folder, *sys.path]),
        ):
            pathlib.Path(folder, "needs_more.py").write_text("import no_such_module_of_its_own\n")
            with self.assertRaisesRegex(ModuleNotFoundError, "no_such_module_of_its_own"):
                table_module.load("needs_more")

    def test_sizes_are_listed_with_commas(self):
        self.assertEqual(_table_command._sizes("1,16,64"), [1, 16, 64])
        for text in ("", "1,", "x", "-1", "0", "1 2"):
            with self.assertRaisesRegex(argparse.ArgumentTypeError, "no list of sizes"):
                _table_command._sizes(text)

    def test_a_file_stays_in_its_folder(self):
        stub.start()
        for name in ("/tmp/E=8.json", "../E=8.json"):
            with self.assertRaisesRegex(cubind.InvalidArgumentError, "leaves the folder"):
                _table_command._path("out", table_of(file=name), "GPU")
        version = triton.__version__.replace(".", "_")
        table = table_of(file="triton_{triton}/E=8,device_name={device_name}.json")
        path = _table_command._path("out", table, "NVIDIA H200")
        self.assertEqual(path, pathlib.Path(f"out/triton_{version}/E=8,device_name=NVIDIA_H200.json"))
