"""Stored choices: a real daemon keeps them."""

import concurrent.futures
import contextlib
import dataclasses
import json
import threading
import unittest
import unittest.mock

import cubind
import python_found

python_found.require("grpc")
import running  # noqa: E402
from cubind import _core  # noqa: E402
from cubind.errors import DataLossError, FailedPreconditionError, UnavailableError  # noqa: E402
from cubind.inductor._answers import Answers  # noqa: E402
from cubind.inductor._question import Choice, make_question  # noqa: E402
from tuned_daemon import WithDaemon  # noqa: E402

CANDIDATES = ["aten::mm None {}", 'triton::mm 1234 {"BLOCK_M": 64}', 'triton::mm 1234 {"BLOCK_M": 128}']


def question(text="a question", candidates=CANDIDATES):
    return make_question(text, candidates, "mm 64x128 by 128x256 bfloat16", "2.11.0 12.8 3.6.0", 0)


class Stored(WithDaemon):
    def setUp(self):
        super().setUp()
        self.answers = Answers(self.client)

    def test_the_first_offer_stays(self):
        asked, first = (
            question("first"),
            Choice(2, 0.25, {"PLANNABLE": 1, "TEMPLATE": -1, "TEMPLATE_NS": 3 << 40}),
        )
        self.assertIsNone(self.answers.ask(asked))
        self.assertEqual(self.answers.offer(asked, first), first)
        self.assertEqual(self.answers.offer(asked, Choice(1, 0.125)), first)
        self.assertEqual(self.answers.ask(asked), first)

    def test_the_configuration_of_a_kernel_comes_as_it_was_offered(self):
        asked = question("triton_poi_fused_add_0", [])
        values = {"XBLOCK": 512, "R0_BLOCK": 1, "num_warps": 8, "num_stages": 1, "found_by_coordesc": 1}
        choice = Choice(0, 0.25, values, "5a" * 32)
        self.assertEqual(self.answers.offer(asked, choice), choice)
        self.assertEqual(self.answers.ask(asked), choice)
        self.assertEqual(self.answers.offer(asked, Choice(0, 0.125, {"XBLOCK": 1}, "5b" * 32)), choice)

    def test_of_offers_at_the_same_moment_all_get_the_same_one(self):
        offering = threading.Barrier(len(CANDIDATES))
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(cubind.connect(self.daemon.address)) for _ in CANDIDATES]
            stack.enter_context(pool := concurrent.futures.ThreadPoolExecutor(len(CANDIDATES)))

            def offer(client, asked, number):
                offering.wait(running.PATIENCE)
                return Answers(client).offer(asked, Choice(number, 0.25))

            for at in range(20):
                asked = question(f"at the same moment {at}")
                numbers = range(len(CANDIDATES))
                given = list(pool.map(offer, clients, [asked] * len(CANDIDATES), numbers))
                self.assertEqual(given, [self.answers.ask(asked)] * len(CANDIDATES))

    def test_it_is_a_record_of_a_table_with_the_time_that_inductor_measured(self):
        asked = question("record")
        self.answers.offer(asked, Choice(1, 0.25))
        [record] = json.loads(self.client.export_table(kernel=asked.name, replayed=True))["records"]
        self.assertEqual(record["toolchain"]["name"], "2.11.0 12.8 3.6.0: mm 64x128 by 128x256 bfloat16")
        self.assertEqual((record["configuration"], record["time_us"]), ({"CANDIDATE": 1}, 250.0))
        self.assertNotEqual(record["evidence"], "measured")
        self.assertFalse(record["verification"]["verified"])

    def test_a_number_whose_candidate_is_another_one_is_no_answer(self):
        asked = question("changed")
        self.answers.offer(asked, Choice(1, 0.25))
        for candidates in (CANDIDATES[:1], [CANDIDATES[0], CANDIDATES[2]]):
            other = dataclasses.replace(question("changed", candidates), digest=asked.digest)
            self.assertIsNone(self.answers.ask(other))

    def test_another_question_has_no_answer(self):
        self.answers.offer(question("one"), Choice(1, 0.25))
        self.assertIsNone(self.answers.ask(question("one more")))

    def test_a_gpu_that_the_daemon_does_not_know_stores_nothing(self):
        gpu = _core.gpu(0)
        other = {**gpu, "facts": {**gpu["facts"], "sm_count": 7}}
        self.enterContext(unittest.mock.patch.object(_core, "gpu", lambda ordinal: other))
        with self.assertRaisesRegex(FailedPreconditionError, "no agent with this GPU"):
            self.answers.offer(question("elsewhere"), Choice(1, 0.25))

    def test_the_store_has_a_name(self):
        self.assertRegex(self.answers.store(), "^[0-9a-f]{16,}$")


class Absent(unittest.TestCase):
    def test_a_daemon_that_does_not_answer_is_an_error(self):
        with cubind.connect("unix:///nowhere/cubind.sock") as client:
            for call in (Answers(client).store, lambda: Answers(client).ask(question())):
                with self.assertRaises((UnavailableError, DataLossError)):
                    call()


class Questions(unittest.TestCase):
    def test_an_address_of_this_process_is_refused(self):
        for text in ("<function f at 0x7f00>", '{"x": "<object object at 0x1>"}'):
            with self.assertRaisesRegex(FailedPreconditionError, "object of this process"):
                question(text)
        question("0x40 is a number")
