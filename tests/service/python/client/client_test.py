"""The Python client against a real daemon, which replays a recorded table."""

import dataclasses
import hashlib
import multiprocessing
import os
import pathlib
import pickle
import tempfile
import time
import unittest
from unittest import mock

import cubind
import running
from tuned_daemon import PROBLEM, WithTuning

WITHOUT_GPU = """
import sys, cubind
client = cubind.connect(sys.argv[1])
for name in ("scal", "scale"):
    try:
        client.get(name, N=4096, K=2, T="f32")
    except cubind.CubindError as error:
        print(f"{type(error).__name__}: {error}")
"""


class Get(WithTuning):
    def test_without_a_gpu_an_unknown_kernel_is_told_before_the_missing_driver(self):
        told = running.run_python(WITHOUT_GPU, self.daemon.address, fake_driver=False)
        self.assertRegex(told, '^NotFoundError: .*did you mean "scale".*\nFailedPreconditionError: .*driver')
        self.assertIn("name the GPU that the answer is for", told)

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
        pinned = {job["job"]: job["processes"] for job in self.client.status()["pinned"]}
        self.assertEqual(pinned["rollout"], 1)
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
        sizes = range(3000, 3016)
        answers = running.together(lambda n: self.get({**PROBLEM, "N": n}), sizes)
        self.assertEqual([answer.problem["N"] for answer in answers], [*sizes])

    def test_the_current_gpu_is_asked_for_by_its_facts(self):
        self.assertEqual(self.client.get("scale", PROBLEM, tune=False).device, "nvidia-h200")


class Recording(WithTuning):
    def test_a_list_that_cannot_be_recorded_is_a_warning(self):
        record = {"CUBIND_RECORD": "/proc/cubind/shapes.jsonl"}
        with (
            mock.patch.dict(os.environ, record),
            self.daemon.connect() as client,
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
            listed = running.cubindctl(self.daemon.address, "tune", "--shapes", written)
            self.assertEqual(listed.stdout.count("fresh already"), 2)


def ask_in_child(address, device, queue):
    with cubind.connect(address, timeout=running.PATIENCE) as client:
        queue.put(client.get("scale", PROBLEM, device=device).digest)


class Processes(WithTuning):
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
