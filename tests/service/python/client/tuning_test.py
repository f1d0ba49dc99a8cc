"""Tunings, listings and tables of the Python client against a real daemon, which replays a recorded table."""

import contextlib
import io
import json
import math
import pathlib
import re
import sys
import tempfile
import types
from unittest import mock

import cubind
import running
from fake_daemon import FakeDaemon, pb
from tuned_daemon import PROBLEM, WithTuning


@contextlib.contextmanager
def with_tqdm():
    """Meanwhile tqdm is installed: what makes its bars, and each bar."""
    bar = mock.MagicMock()
    bar.__enter__.return_value = bar
    tqdm = mock.Mock(return_value=bar)
    modules = {"tqdm": types.ModuleType("tqdm"), "tqdm.auto": types.SimpleNamespace(tqdm=tqdm)}
    with mock.patch.dict(sys.modules, modules):
        yield tqdm, bar


@contextlib.contextmanager
def without_tqdm():
    """Meanwhile it is not; what is written to standard error."""
    said = io.StringIO()
    missing = mock.patch.dict(sys.modules, {"tqdm": None, "tqdm.auto": None})
    with missing, contextlib.redirect_stderr(said):
        yield said


class Tuning(WithTuning):
    def test_a_problem_that_fails_is_a_result_with_its_error(self):
        (result,) = self.client.tune([{"N": 4096, "K": 77, "T": "f32"}], kernel="scale", progress=False)
        self.assertEqual(result.state, "failed")
        self.assertTrue(result.error)

    def test_what_is_measured_is_not_measured_again(self):
        (result,) = self.client.tune([PROBLEM], kernel="scale", progress=False)
        self.assertEqual((result.fresh, result.configuration), (True, self.tuned[0].configuration))

    def test_a_budget_ends_the_search(self):
        problem = {**PROBLEM, "K": 3}
        options = {"kernel": "scale", "progress": False, "max_seconds": 60, "namespace": "budget"}
        (few,) = self.client.tune([problem], max_trials=2, **options)
        self.assertEqual((few.state, few.fresh), ("done", False))
        (again,) = self.client.tune([problem], max_trials=2, **options)
        (all_of_them,) = self.client.tune([problem], **options)
        self.assertEqual((again.fresh, all_of_them.fresh), (True, False))

    def test_a_shape_list_is_read_from_each_kind_of_file(self):
        texts = {
            "s.csv": "kernel,N,K,T\nscale,4096,2,f32\n",
            "s.jsonl": '\n{"kernel": "scale", "N": 4096, "K": 2, "T": "f32"}\n',
            "s.json": '{"kernel": "scale", "problems": [{"N": 4096, "K": 2, "T": "f32"}]}',
        }
        for name, text in texts.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, name)
                path.write_text(text)
                (result,) = self.client.tune(path, progress=False)
                self.assertEqual((result.fresh, result.problem), (True, PROBLEM))

    def test_a_wrong_shape_list_is_told_with_its_place(self):
        texts = {
            "s.csv": ("N,T\n8,f32\n", 's.csv line 2: "K" is missing'),
            "s.jsonl": ('\n{"N": 8, "T": "f32"}', 's.jsonl line 2: "K" is missing'),
            "s.json": ('{"problems": [{"N": 8, "T": "f32"}]}', 's.json /problems/0: "K" is missing'),
            "a.json": ("[]", 'a.json: expected an object with "problems", a list'),
            "b.jsonl": ("{", "b.jsonl line 1: Expecting property name"),
            "s.txt": ("", "s.txt: a shape list ends in .json, .jsonl or .csv"),
        }
        for name, (text, told) in texts.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, name)
                path.write_text(text)
                with self.assertRaisesRegex(cubind.InvalidArgumentError, re.escape(told)):
                    self.client.tune(path, kernel="scale", progress=False)
        given = {
            "shapes: is one problem: pass a list": PROBLEM,
            "shapes[0]: 'N=1' is not a mapping": ["N=1"],
            'shapes[1]: "K" is missing': [PROBLEM, {"N": 8, "T": "f32"}],
        }
        for told, shapes in given.items():
            with (
                self.subTest(told),
                self.assertRaisesRegex(cubind.InvalidArgumentError, re.escape(told)),
            ):
                self.client.tune(shapes, kernel="scale", progress=False)

    def test_progress_is_a_bar_where_tqdm_is_installed(self):
        with with_tqdm() as (tqdm, bar):
            results = self.client.tune([PROBLEM, {"N": 4096, "K": 78, "T": "f32"}], kernel="scale")
        self.assertEqual(tqdm.call_args.kwargs["total"], 2)
        self.assertEqual(sum(call.args[0] for call in bar.update.call_args_list), len(results))
        self.assertTrue(bar.set_postfix_str.call_args.args[0].startswith("scale"))
        bar.__exit__.assert_called_once()

    def test_the_bar_of_one_problem_counts_its_configurations(self):
        problem = {**PROBLEM, "K": 3}
        with with_tqdm() as (tqdm, bar):
            self.client.tune([problem], kernel="scale", retune=True, namespace="bar")
        self.assertEqual((tqdm.call_args.kwargs["unit"], bar.total, bar.n), ("trial", 12, 12))
        self.assertEqual(sum(call.args[0] for call in bar.update.call_args_list), 0)

    def test_the_version_is_that_of_the_programs(self):
        self.assertEqual(cubind.__version__, self.client.status()["version"])

    def test_progress_is_lines_without_tqdm(self):
        with without_tqdm() as said:
            (result,) = self.client.tune([{"N": 4096, "K": 79, "T": "f32"}], kernel="scale")
        self.assertEqual(said.getvalue(), f"scale N=4096,K=79,T=f32: {result.error}\n")

    def test_a_job_that_waits_says_for_what_once(self):
        events = []
        for state, note in (
            ("QUEUED", ""),
            ("NO_DEVICE", ""),
            ("NO_DEVICE", ""),
            ("WAITING_FOR_IDLE_GPU", ""),
            ("WAITING_FOR_IDLE_GPU", "process 7 uses the GPU"),
            ("RUNNING", ""),
        ):
            event = pb.TuneEvent()
            event.job.id, event.job.kernel, event.job.device = "1", "scale", "nvidia-h200"
            event.job.problem.dims.add(name="N", value=4096)
            event.job.state, event.job.note = pb.Job.State.Value(state), note
            events.append(event)
        with (
            without_tqdm() as said,
            FakeDaemon(events=events) as daemon,
            cubind.connect(daemon.address) as client,
        ):
            client.tune([{"kernel": "scale", "N": 4096}])
        self.assertEqual(
            said.getvalue(),
            "scale N=4096: waits: no agent offers nvidia-h200\n"
            "scale N=4096: waits: another process uses the GPU\n"
            "scale N=4096: waits: process 7 uses the GPU\n",
        )

    def test_a_source_is_judged_with_its_headers_and_its_launch(self):
        reply = pb.EvaluateReply(verdict_json=b'{"outcome": "wrong"}')
        with mock.patch.object(self.client._connection, "unary", return_value=reply) as unary:
            verdict = self.client.judge(
                "scale",
                "// mine",
                ["N=4096,T=f32"],
                headers={"mine.cuh": ""},
                grid=["N"],
                baseline={"THREADS": 64},
                rounds=12,
                keep=True,
            )
        self.assertEqual(verdict, {"outcome": "wrong"})
        name, request = unary.call_args.args[:2]
        self.assertEqual((name, request.kernel, request.rounds), ("Evaluate", "scale", 12))
        self.assertEqual([file.path for file in request.files], ["source.cu", "mine.cuh"])
        self.assertEqual((list(request.grid), request.problems[0].dims[0].value), (["N"], 4096))
        (value,) = request.baseline.values
        self.assertEqual((value.name, value.value, request.keep), ("THREADS", 64, True))

    def test_what_cannot_be_judged_or_tuned_is_refused_before_anything_is_sent(self):
        def judge(source="// mine", **options):
            return lambda: self.client.judge("scale", source, [{**PROBLEM, "K": 2}], **options)

        def tune(**options):
            return lambda: self.client.tune([{"kernel": "scale", **PROBLEM}], progress=False, **options)

        for told, error, call in (
            ('headers: "source.cu" is the source', ValueError, judge(headers={"source.cu": "// another"})),
            ("'source.cu' is no text", ValueError, judge("\udc80")),
            ("timeout: nan is not a number of seconds", ValueError, judge(timeout=math.nan)),
            ("rounds: -1 is not between 0 and", ValueError, judge(rounds=-1)),
            ("rounds: 2.5 is not an integer", TypeError, judge(rounds=2.5)),
            ("baseline: THREADS=few is no integer", ValueError, judge(baseline="THREADS=few")),
            ("the call or its answer is too large", cubind.ResourceExhaustedError, judge("/" * (5 << 20))),
            ("max_trials: -1 is not between 0 and", ValueError, tune(max_trials=-1)),
            ("max_trials: True is not an integer", TypeError, tune(max_trials=True)),
        ):
            with self.subTest(told), self.assertRaisesRegex(error, told):
                call()

    def test_a_table_is_a_frame_where_that_is_asked_for(self):
        pandas = types.SimpleNamespace(DataFrame=lambda rows: ("frame", rows))
        with mock.patch.dict(sys.modules, pandas=pandas):
            frame = self.client.table("rmsnorm_forward", pandas=True)
        self.assertEqual(frame, ("frame", self.client.table("rmsnorm_forward")))

    def test_listings(self):
        kernels = {kernel["name"]: kernel for kernel in self.client.kernels()}
        roles = {argument["name"]: argument["role"] for argument in kernels["scale"]["arguments"]}
        self.assertEqual(roles, {"x": "in", "y": "out", "N": "none"})
        self.assertEqual(self.client.table("softmax_forward"), [])
        shipped = self.client.table("softmax_forward", shipped=True)
        self.assertEqual({(row["device"], row["evidence"]) for row in shipped}, {("nvidia-h200", "shipped")})
        self.client.get("scale", {**PROBLEM, "K": 5}, device="nvidia-h200", tune=False)
        (want,) = self.client.wanted("scale")
        self.assertEqual(want["problem"], {"N": 4096, "K": 5, "T": "f32"})

    def test_a_table_goes_out_and_comes_in(self):
        with tempfile.TemporaryDirectory() as folder, running.Daemon("--no-shipped-tables") as other:
            path = pathlib.Path(folder, "table.json")
            text = self.client.export_table(path, kernel="softmax_forward", shipped=True)
            self.assertEqual(json.loads(text), json.loads(path.read_text()))
            with cubind.connect(other.address) as client:
                added = client.import_table(path)
                self.assertEqual(added["records_added"], len(json.loads(text)["records"]))
                self.assertGreater(added["records_added"], 0)
                path.write_text("{}")
                with self.assertRaises(cubind.InvalidArgumentError):
                    client.import_table(path)
