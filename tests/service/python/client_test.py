"""The Python client against a real daemon, which replays a recorded table; launches go to a fake driver."""

import contextlib
import copy
import dataclasses
import gc
import hashlib
import io
import json
import multiprocessing
import os
import pathlib
import pickle
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
from unittest import mock

import cubind
import running
from cubind import _connection

PROBLEM = {"N": 4096, "K": 2, "T": "f32"}


def buffer(address, elements):
    return running.FakeArray(address, (elements,))


def on_gpu(ordinal, array):
    """As an array of CuPy says it."""
    placed = copy.copy(array)
    placed.device = types.SimpleNamespace(id=ordinal)
    return placed


class WithDaemon(unittest.TestCase):
    """`device` is the label of the replay device, for which PROBLEM is tuned."""

    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(running.Daemon())
        with cubind.connect(cls.daemon.address, timeout=running.PATIENCE) as client:
            cls.device = next(d["label"] for d in client.status()["devices"] if d["offered"])
            cls.tuned = client.tune([{"kernel": "scale", **PROBLEM}], progress=False)

    def setUp(self):
        self.client = cubind.connect(self.daemon.address, timeout=running.PATIENCE)
        self.addCleanup(self.client.close)

    def get(self, problem=PROBLEM, **options):
        return self.client.get("scale", problem, device=self.device, **options)


class Get(WithDaemon):
    def test_the_answer_is_the_winner_of_the_tuning(self):
        (winner,) = self.tuned
        self.assertEqual((winner.state, winner.error), ("done", ""))
        answer = self.get()
        self.assertEqual(answer.problem, PROBLEM)
        self.assertEqual((answer.evidence, answer.match), ("replayed", "exact"))
        self.assertEqual(answer.configuration, winner.configuration)
        self.assertEqual(answer.time_us, winner.time_us)
        self.assertEqual(hashlib.sha256(answer.cubin).hexdigest(), answer.digest)
        self.assertEqual(answer.cubin[:4], b"\x7fELF")
        self.assertEqual(answer.plan[0]["block"][0], answer.configuration["THREADS"])
        self.assertEqual([p["name"] for p in answer.plan[0]["parameters"]], ["x", "y", "N"])

    def test_an_answer_is_shown_in_a_line(self):
        answer = self.get()
        shown = f"Answer(scale N=4096,K=2,T=f32: exact, replayed, {answer.time_us:.2f} us, THREADS="
        self.assertEqual(repr(answer)[: len(shown)], shown)
        many = {f"TUNABLE_{number}": number for number in range(100)}
        long = repr(dataclasses.replace(answer, configuration=many))
        self.assertEqual((len(long), long[-4:], long[: len(shown) - 8]), (200, "...)", shown[:-8]))
        untimed = repr(dataclasses.replace(answer, time_us=None, plan=[{}] * 100))
        self.assertIn("exact, replayed, THREADS=", untimed)

    def test_an_answer_can_be_locked_to_a_generation(self):
        first = self.get()
        self.assertRegex(first.generation, r"^[0-9]+@[0-9a-f]+$")
        locked = self.get(generation=first.generation, job="rollout")
        self.assertEqual((locked.digest, locked.plan), (first.digest, first.plan))
        with (
            mock.patch.dict(os.environ, CUBIND_GENERATION="999@00"),
            self.assertRaisesRegex(cubind.FailedPreconditionError, "is one of another store"),
        ):
            self.get(tune=False)
        with self.assertRaisesRegex(cubind.InvalidArgumentError, "is not a generation"):
            self.get(generation="12")

    def test_another_problem_of_the_bucket_needs_no_call(self):
        first = self.get()
        before = self.client.calls
        again = self.get("N=2999,K=2,T=f32")
        self.assertEqual(self.client.calls, before)
        self.assertEqual((again.problem["N"], again.match), (2999, "bucket"))
        self.assertEqual(again.configuration, first.configuration)
        self.assertEqual(again.plan[0]["parameters"][0]["extent_bytes"], 2999 * 4)
        self.get({**PROBLEM, "T": "torch.float32"})  # in other words it is another question
        self.assertEqual(self.client.calls, before + 1)

    def test_an_answer_that_will_get_better_is_asked_for_again_after_a_while(self):
        problem = {**PROBLEM, "N": 1 << 20}
        self.assertNotEqual(self.get(problem).match, "exact")
        before = self.client.calls
        self.get(problem)
        self.assertEqual(self.client.calls, before)
        later = time.monotonic() + 11
        with mock.patch("cubind.client.time.monotonic", return_value=later):
            self.get(problem)
        self.assertEqual(self.client.calls, before + 1)

    def test_an_answer_knows_where_its_rule_ends(self):
        answer = self.get()
        self.assertEqual(answer.for_dims(N=4000).problem["N"], 4000)
        self.assertIsNone(answer.for_dims(N=5000))
        self.assertIsNone(answer.for_dims(K=3))
        with self.assertRaisesRegex(TypeError, "no dim M"):
            answer.for_dims(M=1)

    def test_errors_keep_code_field_and_the_way_out(self):
        with self.assertRaises(cubind.NotFoundError) as caught:
            self.client.get("scael", PROBLEM, device=self.device)
        self.assertEqual(caught.exception.code, "NOT_FOUND")
        with self.assertRaises(cubind.InvalidArgumentError) as caught:
            self.get({**PROBLEM, "N": -1})
        self.assertTrue(caught.exception.field.startswith("problem"), caught.exception)
        self.assertIsInstance(caught.exception, ValueError)
        with self.assertRaisesRegex(cubind.InvalidArgumentError, "problem.N: 4096.5"):
            self.get({**PROBLEM, "N": 4096.5})
        with self.assertRaisesRegex(cubind.InvalidArgumentError, "accept: .*known: bucket"):
            self.get(accept="buckets")
        with self.assertRaisesRegex(cubind.InvalidArgumentError, "on_miss"):
            self.get(on_miss="later")
        with self.assertRaises(cubind.NotFoundError):
            self.get({**PROBLEM, "K": 9}, on_miss="fail", accept="exact")

    def test_a_client_may_be_more_patient_than_the_daemon(self):
        with cubind.connect(self.daemon.address, timeout=10 * running.PATIENCE) as client:
            self.assertEqual(client.get("scale", PROBLEM, device=self.device).problem, PROBLEM)

    def test_an_error_survives_pickling(self):
        error = pickle.loads(pickle.dumps(cubind.InvalidArgumentError("is 0", "problem.N")))
        self.assertEqual((error.field, str(error)), ("problem.N", "problem.N: is 0"))

    def test_threads_share_a_client(self):
        answers = []
        threads = [
            threading.Thread(target=lambda n=n: answers.append(self.get({**PROBLEM, "N": n})))
            for n in range(3000, 3016)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual({a.problem["N"] for a in answers}, set(range(3000, 3016)))

    def test_without_a_driver_the_error_says_how_to_name_a_gpu(self):
        out = running.run_python(
            "import cubind, sys\n"
            "try: cubind.connect(sys.argv[1]).get('scale', N=1, K=2, T='f32')\n"
            "except cubind.FailedPreconditionError as error: print(error)",
            self.daemon.address,
            fake_driver=False,
        )
        self.assertIn("name the GPU that the answer is for", out)

    def test_the_current_gpu_is_asked_for_by_its_facts(self):
        self.assertEqual(self.client.get("scale", PROBLEM, tune=False).device, "nvidia-h200")


class Tuning(WithDaemon):
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
        bar = mock.MagicMock()
        bar.__enter__.return_value = bar
        tqdm = mock.Mock(return_value=bar)
        modules = {"tqdm": types.ModuleType("tqdm"), "tqdm.auto": types.SimpleNamespace(tqdm=tqdm)}
        with mock.patch.dict(sys.modules, modules):
            results = self.client.tune([PROBLEM, {"N": 4096, "K": 78, "T": "f32"}], kernel="scale")
        self.assertEqual(tqdm.call_args.kwargs["total"], 2)
        self.assertEqual(sum(call.args[0] for call in bar.update.call_args_list), len(results))
        self.assertTrue(bar.set_postfix_str.call_args.args[0].startswith("scale"))
        bar.__exit__.assert_called_once()

    def test_the_version_is_that_of_the_programs(self):
        self.assertEqual(cubind.__version__, self.client.status()["version"])

    def test_progress_is_lines_without_tqdm(self):
        said = io.StringIO()
        with (
            mock.patch.dict(sys.modules, {"tqdm": None, "tqdm.auto": None}),
            contextlib.redirect_stderr(said),
        ):
            (result,) = self.client.tune([{"N": 4096, "K": 79, "T": "f32"}], kernel="scale")
        self.assertEqual(said.getvalue(), f"scale N=4096,K=79,T=f32: {result.error}\n")

    def test_a_job_that_waits_says_for_what_once(self):
        messages = cubind._wire.messages()
        event = messages.TuneEvent()
        event.job.id, event.job.kernel, event.job.device = "1", "scale", "nvidia-h200"
        event.job.problem.dims.add(name="N", value=4096)
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            show = cubind.tuning._line_printer()
            for state in ("QUEUED", "NO_DEVICE", "NO_DEVICE", "WAITING_FOR_IDLE_GPU", "RUNNING"):
                event.job.state = messages.Job.State.Value(state)
                show(event, False)
        self.assertEqual(
            said.getvalue(),
            "scale N=4096: waits: no agent offers nvidia-h200\n"
            "scale N=4096: waits: another process uses the GPU\n",
        )

    def test_a_table_is_a_frame_where_that_is_asked_for(self):
        pandas = types.SimpleNamespace(DataFrame=lambda rows: ("frame", rows))
        with mock.patch.dict(sys.modules, pandas=pandas):
            frame = self.client.table("rmsnorm_forward", pandas=True)
        self.assertEqual(frame, ("frame", self.client.table("rmsnorm_forward")))

    def test_listings(self):
        kernels = {kernel["name"]: kernel for kernel in self.client.kernels()}
        roles = {argument["name"]: argument["role"] for argument in kernels["scale"]["arguments"]}
        self.assertEqual(roles, {"x": "in", "y": "out", "N": "none"})
        self.assertIn("nvidia-h200", {row["device"] for row in self.client.table("rmsnorm_forward")})
        self.client.get("scale", {**PROBLEM, "K": 5}, device="nvidia-h200", tune=False)
        (want,) = self.client.wanted("scale")
        self.assertEqual(want["problem"], {"N": 4096, "K": 5, "T": "f32"})

    def test_a_table_goes_out_and_comes_in(self):
        with tempfile.TemporaryDirectory() as folder, running.Daemon("--no-shipped-tables") as other:
            path = pathlib.Path(folder, "table.json")
            text = self.client.export_table(path, kernel="softmax_forward")
            self.assertEqual(json.loads(text), json.loads(path.read_text()))
            with cubind.connect(other.address) as client:
                added = client.import_table(path)
                self.assertEqual(added["records_added"], len(json.loads(text)["records"]))
                self.assertGreater(added["records_added"], 0)
                path.write_text("{}")
                with self.assertRaises(cubind.InvalidArgumentError):
                    client.import_table(path)


class Launching(WithDaemon):
    def setUp(self):
        super().setUp()
        self.driver = running.FakeDriver(parameters=3)
        question = cubind.Question(device=self.device)
        self.kernel = self.client.kernel("scale", T="f32", K=2, question=question)
        self.x, self.y = buffer(0x10000, 4096), buffer(0x20000, 4096)

    def test_a_call_launches_with_the_grid_and_parameters_of_its_problem(self):
        self.kernel(x=self.x, y=self.y, N=4000, stream=7)
        plan = self.get({**PROBLEM, "N": 4000}).plan
        (launch,) = self.driver.launches()
        self.assertEqual(list(launch.grid), plan[0]["grid"])
        self.assertEqual(list(launch.block), plan[0]["block"])
        self.assertEqual(launch.stream, 7)
        self.assertEqual(list(launch.parameters[:3]), [0x10000, 0x20000, 4000])

    def test_an_array_that_has_dlpack_alone_is_read_by_torch(self):
        class Exporter:
            def __init__(self, device, view):
                self.device, self.view = device, view

            def __dlpack_device__(self):
                return self.device, 0

        torch = types.SimpleNamespace(Tensor=types.ModuleType, from_dlpack=lambda array: array.view)
        y = Exporter(2, self.y)
        with mock.patch.dict(sys.modules, torch=torch):
            self.kernel(x=self.x, y=y, N=4096)
            with self.assertRaisesRegex(cubind.InvalidArgumentError, "argument y: a Exporter is no array"):
                self.kernel(x=self.x, y=Exporter(1, self.y), N=4096)
        self.assertEqual([launch.parameters[1] for launch in self.driver.launches()], [0x20000])
        with (
            mock.patch.dict(sys.modules, torch=None, cupy=None),
            self.assertRaisesRegex(cubind.InvalidArgumentError, "argument y: a Exporter is no array"),
        ):
            self.kernel(x=self.x, y=y, N=4096)

    def test_other_sizes_of_the_bucket_make_no_call(self):
        self.kernel(x=self.x, y=self.y, N=4096)
        before = self.client.calls
        for n in range(3000, 3100):
            self.kernel(x=self.x, y=self.y, N=n)
        self.assertEqual(self.client.calls, before)
        self.assertEqual(
            [launch.parameters[2] for launch in self.driver.launches()[1:]], list(range(3000, 3100))
        )

    def test_sizes_that_were_not_met_before_leave_no_memory_behind(self):
        def launch(sizes):
            for size in sizes:
                self.kernel(x=self.x, y=self.y, N=size)
            gc.collect()
            return sys.getallocatedblocks()

        before = launch(range(2100, 2200))
        self.assertLess(launch(range(2200, 4097)) - before, 100)

    def test_a_bound_launch_repeats_itself_with_the_same_or_other_arrays(self):
        bound = self.kernel.bind(x=self.x, y=self.y, N=4000)
        self.assertEqual(self.driver.launches(), [])
        bound()
        bound(buffer(0x50000, 4096))
        bound(y=0x60000, x=self.x)
        seen = [list(launch.parameters[:3]) for launch in self.driver.launches()]
        self.assertEqual(seen, [[0x10000, 0x20000, 4000], [0x50000, 0x20000, 4000], [0x10000, 0x60000, 4000]])
        self.assertEqual((bound.arguments, bound.answer.problem["N"]), (("x", "y"), 4000))
        with self.assertRaisesRegex(TypeError, "takes no argument z"):
            bound(z=1)
        with self.assertRaisesRegex(TypeError, "takes 2 arguments, 3"):
            bound(1, 2, 3)
        with self.assertRaisesRegex(cubind.InvalidArgumentError, "argument x: .*aligned"):
            bound(0x10001)

    def test_wrong_arguments_are_refused_by_name_and_nothing_is_launched(self):
        given = {"x": self.x, "y": self.y, "N": 4096}
        wrong = {
            "argument x: is missing": {"x": None},
            "argument x: has 4000 bytes": {"x": buffer(0x10000, 1000)},
            "argument y: has elements of f64": {"y": running.FakeArray(0x30000, (4096,), "<f8")},
            "argument y: is not contiguous": {"y": running.FakeArray(0x30000, (64, 64), strides=(4, 256))},
            "argument y: .*no array in GPU memory": {"y": [1, 2]},
            "argument x: .*aligned to 2 bytes": {"x": buffer(0x10002, 4096)},
            "argument y: lies on GPU 1, the first array on GPU 0": {
                "x": on_gpu(0, self.x),
                "y": on_gpu(1, self.y),
            },
            "argument z: .*it takes x, y": {"z": self.x},
            "cannot allocate an array of f32 next to a FakeArray": {"y": None},
            "problem.N: is missing: pass N=": {"N": None},
        }
        for message, change in wrong.items():
            call = {name: value for name, value in {**given, **change}.items() if value is not None}
            with self.subTest(message), self.assertRaisesRegex(cubind.InvalidArgumentError, message):
                self.kernel(**call)
        self.assertEqual(self.driver.launches(), [])

    def test_a_cubin_is_loaded_once_whatever_it_is_asked_for(self):
        self.kernel(x=self.x, y=self.y, N=4096)
        before = self.driver.modules()
        with cubind.connect(self.daemon.address) as other:
            kernel = other.kernel("scale", T="f32", K=2, question=cubind.Question(device=self.device))
            kernel(x=self.x, y=self.y, N=4000)
        self.assertEqual(self.driver.modules(), before)
        self.assertEqual([launch.parameters[2] for launch in self.driver.launches()], [4096, 4000])

    def test_an_unknown_kernel_is_refused_with_the_known_ones(self):
        with self.assertRaisesRegex(cubind.NotFoundError, "known: .*scale"):
            self.client.kernel("scael")


class Recording(WithDaemon):
    def test_a_list_that_cannot_be_recorded_is_a_warning(self):
        record = {"CUBIND_RECORD": "/proc/cubind/shapes.jsonl"}
        with (
            mock.patch.dict(os.environ, record),
            cubind.connect(self.daemon.address, timeout=running.PATIENCE) as client,
            self.assertWarnsRegex(RuntimeWarning, "shapes.scale.jsonl"),
        ):
            self.assertEqual(client.get("scale", PROBLEM, device=self.device).match, "exact")

    def test_recorded_problems_are_a_shape_list(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "shapes.jsonl")
            for _ in range(2):  # a second run adds nothing
                with (
                    mock.patch.dict(os.environ, CUBIND_RECORD=str(path)),
                    cubind.connect(self.daemon.address) as client,
                ):
                    for k, n in ((2, 4096), (2, 4000), (3, 4096)):  # the rule answers the second
                        client.get("scale", N=n, K=k, T="f32", device=self.device)
            written = path.with_name("shapes.scale.jsonl")
            self.assertEqual(len(written.read_text().splitlines()), 2)
            results = self.client.tune(written, progress=False)
            self.assertEqual([r.state for r in results], ["done", "done"])
            ctl = [running.PROGRAMS / "cubindctl", "--address", self.daemon.address]
            listed = subprocess.run(
                [*ctl, "tune", "--shapes", written, "--dry-run"], capture_output=True, text=True
            )
            self.assertIn("2 problems, 2 fresh", listed.stdout)


def ask_in_child(address, device, queue):
    with cubind.connect(address, timeout=running.PATIENCE) as client:
        queue.put(client.get("scale", PROBLEM, device=device).digest)


class Processes(WithDaemon):
    def test_forked_and_spawned_children_ask_for_themselves(self):
        digest = self.get().digest
        spawn = multiprocessing.get_context("spawn")
        queue = spawn.Queue()
        child = spawn.Process(target=ask_in_child, args=(self.daemon.address, self.device, queue))
        child.start()
        self.assertEqual(queue.get(timeout=running.PATIENCE), digest)
        child.join(running.PATIENCE)
        self.assertEqual(child.exitcode, 0)

    def test_32_forked_children_use_the_answers_and_end(self):
        self.get()
        fork = multiprocessing.get_context("fork")

        use = [lambda: self.get({**PROBLEM, "N": 3000})] * 30
        asks = [
            lambda: ask_in_child(self.daemon.address, self.device, fork.SimpleQueue()),
            self.client.status,
        ]
        children = [fork.Process(target=target, daemon=True) for target in use + asks]
        for child in children:
            child.start()
        for child in children:
            child.join(running.PATIENCE)
        self.assertEqual({child.exitcode for child in children}, {0})


class Words(unittest.TestCase):
    def test_what_grpc_says_of_a_daemon_that_is_not_there_names_its_address(self):
        connection = _connection.Connection("host:50051")
        for details in (
            "DNS resolution failed for host:50051: C-ares status is not ARES_SUCCESS",
            "errors resolving host:50051: [field:None]",
            "Cancelling all calls",
            "Socket closed",
        ):
            error = connection._error(14, details, None)
            self.assertEqual(error.field, "host:50051", details)
            self.assertIn("CUBIND_ADDRESS", str(error))

    def test_a_daemon_with_tls_that_is_asked_without_it_is_not_taken_for_a_missing_one(self):
        connection = _connection.Connection("gpu7:7600")
        failed = "failed to connect to all addresses; last error: UNAVAILABLE: ipv4:10.0.0.7:7600: "
        for words in ("Socket closed", "Endpoint read failed", "recvmsg:Connection reset by peer"):
            error = str(connection._error(14, failed + words, None))
            self.assertRegex(error, "^gpu7:7600: .*the address tls://HOST:PORT")
            refused = str(_connection.Connection("tls://gpu7:7600")._error(14, failed + words, None))
            self.assertRegex(refused, "^tls://gpu7:7600: .*CUBIND_CLIENT_CERT")

    def test_a_daemon_that_is_silent_is_not_taken_for_a_missing_one(self):
        connection = _connection.Connection("unix:///run/c.sock")
        failed = "failed to connect to all addresses; last error: UNKNOWN: unix:/run/c.sock: "
        for details in (
            failed + "connection attempt timed out before receiving SETTINGS frame",
            "keepalive watchdog timeout",
            "Stream removed (ping timeout)",
        ):
            self.assertRegex(str(connection._error(14, details, None)), "does not answer: it is stopped")
        for words, why in (
            ("No such file or directory", "no such socket"),
            ("Connection refused", "nothing listens"),
        ):
            self.assertRegex(
                str(connection._error(14, failed + words, None)), rf"no daemon answers there \(.*{why}"
            )

    def test_what_a_daemon_says_of_the_server_of_its_store_stays_as_it_is(self):
        details = 'store: PostgreSQL: connection to server at "db" failed: Connection refused'
        self.assertEqual(str(_connection.Connection("host:50051")._error(14, details, None)), details)


class Numbers(unittest.TestCase):
    def test_a_timeout_that_is_none_is_refused_where_it_is_given(self):
        for timeout in (float("nan"), -1.0, 0, float("inf"), 1e300):
            with self.assertRaisesRegex(
                cubind.InvalidArgumentError, "^timeout: .* is not a number of seconds above"
            ):
                cubind.connect("unix:///there", timeout=timeout)
        for timeout in ("30", None, True, [1]):
            with self.assertRaisesRegex(TypeError, "^timeout: .* is not a number of seconds"):
                cubind.Client("unix:///there", timeout)

    def test_an_int_beyond_64_bits_is_refused_with_its_name(self):
        client = cubind.Client("unix:///there")
        with self.assertRaisesRegex(
            cubind.InvalidArgumentError, rf"^problem.N: {2**70} does not fit into 64 bits"
        ):
            client.get("rmsnorm_forward", N=2**70, D=4096, T="bf16")


class Addresses(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(mock.patch.dict(os.environ, XDG_RUNTIME_DIR=self.folder, CUBIND_EMBEDDED="0"))
        os.environ.pop("CUBIND_ADDRESS", None)
        self.socket = pathlib.Path(self.folder, "cubind/cubind.sock")
        self.socket.parent.mkdir()

    def test_no_daemon_and_no_private_one_says_what_was_tried_and_what_to_do(self):
        with self.assertRaises(cubind.UnavailableError) as caught:
            cubind.connect()
        for part in (
            "CUBIND_EMBEDDED=0 forbids a private daemon",
            f"no other daemon was found ({self.socket}: No such file or directory; /run/cubind/cubind.sock: ",
            "`cubind &`",
            "CUBIND_ADDRESS",
        ):
            self.assertIn(part, str(caught.exception))
        with self.assertRaisesRegex(cubind.UnavailableError, "^CUBIND_EMBEDDED=0 forbids"):
            cubind.connect("embedded")

    def test_an_address_without_a_daemon_names_the_three_ways(self):
        with self.assertRaisesRegex(cubind.UnavailableError, "no daemon answers there") as caught:
            cubind.connect(f"unix://{self.folder}/none.sock").status()
        for way in ("`cubind &`", "CUBIND_ADDRESS", 'connect("embedded")'):
            self.assertIn(way, str(caught.exception))
        for address, why in (
            ("localhost", "neither unix:///path"),
            ("http://localhost:7600", "is a web address"),
            (f"unix:///{'x' * 107}", "the path has 108 bytes, a socket's at most 107"),
        ):
            with self.assertRaisesRegex(cubind.InvalidArgumentError, why):
                cubind.connect(address)

    def test_a_socket_counts_only_while_a_daemon_listens_there(self):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.socket))
            with self.assertRaisesRegex(cubind.UnavailableError, "the daemon of this socket has ended"):
                cubind.connect()
            listener.listen(0)
            for _ in range(4):  # more than the queue holds: the test accepts none
                with cubind.connect() as client:
                    self.assertEqual(client.address, f"unix://{self.socket}")

    def test_a_socket_in_tmp_that_another_user_made_is_not_used(self):
        me = 4_000_000_000 + os.getpid()  # no account has it
        folder = pathlib.Path(f"/tmp/cubind-{me}")
        folder.mkdir()
        self.addCleanup(shutil.rmtree, folder)
        owners = {}
        self.enterContext(mock.patch.object(os, "getuid", lambda: me))
        self.enterContext(
            mock.patch.object(pathlib.Path, "lstat", lambda path: types.SimpleNamespace(st_uid=owners[path]))
        )
        os.environ.pop("XDG_RUNTIME_DIR")
        path = folder / "cubind.sock"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen(8)
            for owners[folder], owners[path] in ((me, me), (0, 0)):
                with cubind.connect() as client:
                    self.assertEqual(client.address, f"unix://{path}")
            for of_folder, of_socket, foreign in ((1, me, folder), (me, 1, path)):
                owners |= {folder: of_folder, path: of_socket, folder / "embedded": me}
                with self.assertRaisesRegex(cubind.UnavailableError, f"{foreign} belongs to another user"):
                    cubind.connect()
                with cubind.connect(f"unix://{path}") as client:  # who names it, means it
                    self.assertEqual(client.address, f"unix://{path}")
            owners[folder] = 1
            with self.assertRaisesRegex(
                cubind.UnavailableError, f"cannot have its files here: {folder} belongs to another user; XDG_"
            ):
                os.environ.pop("CUBIND_EMBEDDED")
                cubind.connect()
            self.assertFalse((folder / "embedded").exists())

    def test_cubind_is_off_when_the_environment_says_so(self):
        for word in ("0", "false", "No", "off"):
            out = running.run_python(
                "import cubind\n"
                "try: cubind.connect('unix:///there')\n"
                "except cubind.UnavailableError as error: print(error)",
                CUBIND=word,
            )
            self.assertEqual(out.strip(), f"CUBIND={word} turns cubind off: unset it to use cubind")

    def test_the_job_is_that_of_the_launcher(self):
        from cubind._ranks import job_id

        cases = {
            "mine": {"CUBIND_JOB": "mine", "SLURM_JOB_ID": "17"},
            "slurm-17": {"SLURM_JOB_ID": "17", "TORCHELASTIC_RUN_ID": "run"},
            "torchrun-run": {"TORCHELASTIC_RUN_ID": "run"},
            "": {"TORCHELASTIC_RUN_ID": "none"},
        }
        for expected, environment in cases.items():
            with mock.patch.dict(os.environ, environment, clear=True):
                self.assertEqual(job_id(), expected)


if __name__ == "__main__":
    unittest.main()
