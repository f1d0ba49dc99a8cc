"""A sealed program starts nothing at the daemon, and hears of what is not good enough."""

import unittest
import warnings

import cubind
import running
from tuned_daemon import PROBLEM, WithTuning


class Sealed(WithTuning):
    def setUp(self):
        super().setUp()
        running.forget_warnings()
        self.addCleanup(running.unseal)

    def get(self, n=4096, **options):
        return super().get({**PROBLEM, "N": n}, **options)

    def test_what_was_tuned_answers_also_for_its_bucket(self):
        cubind.seal()
        self.assertEqual(self.get().match, "exact")
        self.assertEqual(self.get(2999).match, "bucket")

    def test_a_miss_is_refused_with_problem_reason_and_remedy_and_starts_no_job(self):
        self.assertTrue(running.eventually(lambda: not self.client.status().get("jobs_running")))
        before = self.client.status()
        cubind.seal()
        with self.assertRaises(cubind.SealedError) as refused:
            self.get(1 << 20, K=3)
        self.assertIn("cubindctl tune", refused.exception.cause)
        after = self.client.status()
        for figure in ("jobs_queued", "jobs_running", "artifacts"):
            self.assertEqual(after.get(figure), before.get(figure), figure)
        self.assertIn(3, [want["problem"]["K"] for want in self.client.wanted("scale")])

    def test_a_cubin_that_is_not_compiled_is_refused_before_it_is(self):
        with running.Daemon("--no-shipped-tables") as other, cubind.connect(other.address) as client:
            device = running.offered_device(client)
            cubind.seal()
            with self.assertRaisesRegex(cubind.SealedError, "the program is sealed: nothing is compiled"):
                client.get("scale", PROBLEM, device=device)
            self.assertEqual(client.status().get("artifacts", 0), 0)

    def test_a_departure_is_refused_unless_the_seal_or_the_question_accepts_it(self):
        match = self.get(1 << 21).match
        self.assertNotIn(match, ("exact", "bucket"))
        cubind.seal()
        with self.assertRaises(cubind.SealedError) as refused:
            self.get(1 << 21, tune=False)
        self.assertEqual(refused.exception.field, f"scale N={1 << 21},K=2,T=f32")
        self.assertIn(f"the answer is {match}", refused.exception.cause)
        self.assertEqual(self.get(1 << 21, accept=match).match, match)
        cubind.seal(accept=f"bucket+{match}")
        self.assertEqual(self.get(1 << 21, tune=False).match, match)

    def test_a_warning_names_each_problem_once_and_the_answer_comes(self):
        cubind.seal("warn")
        with warnings.catch_warnings(record=True, action="always") as told:
            for _ in range(2):
                self.assertNotEqual(self.get(1 << 22, tune=False).match, "exact")
                self.client._answers.drop({"scale"})
        texts = [str(one.message) for one in told]
        self.assertEqual(len([text for text in texts if f"N={1 << 22}" in text]), 1, texts)

    def test_words_that_cannot_be_are_named(self):
        with self.assertRaisesRegex(cubind.InvalidArgumentError, 'mode: "quiet" is neither warn nor error'):
            cubind.seal("quiet")
        with self.assertRaisesRegex(cubind.InvalidArgumentError, '"near" is not a departure'):
            cubind.seal(accept="near")
        self.assertNotEqual(self.get(1 << 23, tune=False).match, "exact")  # nothing is sealed

    def test_the_environment_seals_from_the_start(self):
        program = (
            "import cubind, sys\n"
            f"client = cubind.connect({self.daemon.address!r})\n"
            f"client.get('scale', N={1 << 24}, K=2, T='f32', device={self.device!r}, tune=False)"
        )
        for value, told in (
            ("error", "SealedError: scale N="),
            ("warn", "RuntimeWarning: cubind: scale N="),
            ("yes", 'CUBIND_SEALED: "yes" is neither warn nor error'),
        ):
            done = running.run_python_for_both(["-c", program], check=False, CUBIND_SEALED=value)
            self.assertIn(told, done.stderr)
            self.assertEqual(done.returncode == 0, value == "warn", done.stderr)


class SealedDaemon(unittest.TestCase):
    def test_questions_start_nothing_and_a_tuning_does(self):
        with running.Daemon("--sealed") as daemon, cubind.connect(daemon.address) as client:
            device = running.offered_device(client)
            with self.assertRaisesRegex(cubind.FailedPreconditionError, "the daemon is sealed"):
                client.get("scale", PROBLEM, device=device)
            client.tune([{"kernel": "scale", **PROBLEM}], progress=False)
            self.assertEqual(client.get("scale", PROBLEM, device=device).match, "exact")
