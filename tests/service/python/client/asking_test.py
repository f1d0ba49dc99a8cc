"""Questions on the background thread: who waits for them and how long, and what a daemon that fails costs."""

import itertools
import os
import threading
import time
import unittest
import warnings
from unittest import mock

import running
from cubind import _asking
from cubind._asking import Asker, Lookup
from cubind.errors import DataLossError, NotFoundError, UnavailableError

PATIENCE = 0.5  # seconds
GONE = UnavailableError("no daemon answers there", "unix:///none")

# A question without an answer is under way when the process ends.
ENDS = """
import threading
from cubind._asking import Asker, Lookup
asker, begun, never = Asker(), threading.Event(), threading.Event()
asker.submit(Lookup(lambda: begun.set() or never.wait(), print))
begun.wait()
print("the end", flush=True)
"""


class Asking(unittest.TestCase):
    def setUp(self):
        running.forget_warnings()
        self.asker = Asker(PATIENCE, first_delay=0.05)
        self.addCleanup(self.asker.close)
        self.settled = []
        self.go = threading.Event()  # lets slow answers come
        self.addCleanup(self.go.set)
        self.enterContext(warnings.catch_warnings(action="ignore"))

    def submit(self, *answers):
        """A question that gets these answers in turn, the last one again and again; errors are raised."""
        left = list(answers)

        def ask():
            answer = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(answer, Exception):
                raise answer
            return answer() if callable(answer) else answer

        lookup = Lookup(ask, self.settled.append)
        self.asker.submit(lookup)
        return lookup

    def slow(self):
        return self.submit(lambda: self.go.wait(running.PATIENCE))

    def brief(self, *lookups):
        """The seconds that calls wait for answers, one after the other."""
        with running.waits(self.asker) as waits:
            for lookup in lookups:
                self.asker.wait_briefly(lookup)
        return waits

    def test_an_answer_that_comes_at_once_is_waited_for(self):
        self.asker = Asker(running.PATIENCE)
        lookup = self.submit("answer")
        self.asker.wait_briefly(lookup)
        self.assertEqual(lookup.answer, "answer")
        self.assertTrue(running.eventually(lambda: self.settled == [lookup]))

    def test_a_slow_answer_is_waited_for_once_and_comes_later(self):
        first = self.slow()
        second = self.submit("next")
        # No call waits twice for one, nor for what stands behind it.
        self.assertEqual(self.brief(first, first, second), [PATIENCE])
        self.assertIsNone(first.answer)
        self.go.set()
        self.assertTrue(self.asker.wait(running.PATIENCE))
        self.assertEqual((first.answer, second.answer), (True, "next"))

    def test_calls_that_follow_each_other_share_their_patience(self):
        first = self.submit(lambda: time.sleep(0.6 * PATIENCE) or 1)
        self.brief(first)
        second = self.slow()
        self.assertLessEqual(sum(self.brief(second)), 0.4 * PATIENCE)
        self.assertIsNone(second.answer)

    def test_an_error_of_one_question_is_its_own(self):
        lost, found = self.submit(NotFoundError("no such kernel")), self.submit("answer")
        self.assertTrue(self.asker.wait(running.PATIENCE))
        self.assertIsInstance(lost.error, NotFoundError)
        self.assertEqual((found.answer, self.asker.failure), ("answer", None))

    def test_a_fault_of_the_code_is_an_error_too(self):
        lookup = self.submit(ZeroDivisionError("here"))
        self.assertFalse(self.asker.wait(running.PATIENCE))
        self.assertIn("ZeroDivisionError: here", str(self.asker.failure))
        self.assertFalse(lookup.is_settled)

    def test_a_question_that_the_daemon_always_fails_at_does_not_hold_up_others(self):
        bad = self.submit(GONE)
        self.assertTrue(running.eventually(lambda: self.asker.failure is not None))
        other = self.submit("answer")
        late = self.submit(UnavailableError("no compiled artifact yet"), "late answer")
        self.assertTrue(running.eventually(lambda: other.is_settled and late.is_settled))
        self.assertEqual((other.answer, late.answer, bad.is_settled), ("answer", "late answer", False))
        self.asker.drop(bad)

    def test_a_fault_of_who_is_told_is_warned_of_and_others_are_asked(self):
        def refuse(_):
            raise ZeroDivisionError("there")

        with warnings.catch_warnings(record=True, action="always") as caught:
            self.asker.submit(Lookup(lambda: "answer", refuse))
            self.assertTrue(running.eventually(lambda: caught))
            self.assertIn("ZeroDivisionError: there", str(caught[0].message))
            second = self.submit("other")
            self.assertTrue(running.eventually(lambda: second.is_settled))

    def test_a_thread_that_cannot_be_started_is_a_failure_and_is_tried_again(self):
        self.asker = Asker(PATIENCE, first_delay=0.01)
        none = mock.patch.object(
            threading.Thread, "start", side_effect=RuntimeError("can't start new thread")
        )
        with warnings.catch_warnings(record=True, action="always") as caught, none:
            lookup = self.submit("answer")
            self.assertEqual(self.brief(lookup), [])
            self.assertFalse(self.asker.wait(running.PATIENCE))
        (warning,) = (str(one.message) for one in caught)
        self.assertIn("no thread to ask the daemon: can't start new thread", warning)
        self.assertTrue(running.eventually(lambda: self.asker.hurry() or lookup.is_settled))
        self.assertEqual((lookup.answer, self.asker.failure), ("answer", None))

    def test_a_daemon_that_fails_is_asked_again_and_warned_of_once(self):
        with warnings.catch_warnings(record=True, action="always") as caught:
            lookup = self.submit(GONE, DataLossError("damaged"), GONE, "answer")
            self.assertTrue(running.eventually(lambda: lookup.is_settled))
        self.assertEqual(lookup.answer, "answer")
        self.assertIsNone(self.asker.failure)
        (warning,) = (str(one.message) for one in caught)
        for told in ("torch's own operators", "unix:///none: no daemon answers there", "CUBIND=0"):
            self.assertIn(told, warning)

    def test_nobody_waits_for_a_daemon_that_fails(self):
        self.asker = Asker(PATIENCE, first_delay=60.0)
        first = self.submit(GONE, "answer")
        self.assertTrue(running.eventually(lambda: self.asker.failure is not None))
        second = self.submit("other")
        self.assertEqual(self.brief(second), [])
        self.assertFalse(first.is_settled or second.is_settled)
        self.assertTrue(self.asker.wait(running.PATIENCE))  # asks at once
        self.assertEqual((first.answer, second.answer), ("answer", "other"))

    def test_each_failure_doubles_the_delay_and_hurry_shortens_it(self):
        self.asker = Asker(PATIENCE, first_delay=0.01)
        attempts = []
        lookup = self.submit(lambda: attempts.append(time.monotonic()) or self.fail_())
        self.assertTrue(running.eventually(lambda: len(attempts) == 8))
        for number, (before, after) in enumerate(itertools.pairwise(attempts)):
            self.assertGreaterEqual(after - before, 0.01 * 2**number)
        due = self.asker._retry_at
        self.asker.hurry()  # the next one was due after 1.28 s, and is after 0.1 s
        self.assertLess(self.asker._retry_at, due)
        self.assertTrue(running.eventually(lambda: len(attempts) > 8))
        self.asker.drop(lookup)

    def fail_(self):
        raise GONE

    def test_wait_says_when_the_daemon_fails_or_the_time_is_over(self):
        self.submit(GONE)
        self.assertFalse(self.asker.wait(100 * running.PATIENCE))
        self.asker = Asker()
        self.slow()
        self.assertFalse(self.asker.wait(0.1))
        self.assertTrue(Asker().wait(0))  # nothing was asked

    def test_an_answer_that_is_not_there_yet_is_no_failure(self):
        lookup = self.submit(UnavailableError("no compiled artifact yet; job 7 compiles one"), "answer")
        self.assertTrue(running.eventually(lambda: lookup.is_settled))
        self.assertEqual((lookup.answer, self.asker.failure), ("answer", None))

    def test_another_daemon_is_asked_for_what_the_last_one_owes(self):
        lookup = self.submit(lambda: self.go.wait(running.PATIENCE) and "late", "other")
        self.assertEqual(self.brief(lookup), [PATIENCE])
        self.asker.start_anew()
        self.assertTrue(running.eventually(lambda: lookup.is_settled))
        self.go.set()
        self.assertEqual(lookup.answer, "other")
        self.assertTrue(self.asker.wait(running.PATIENCE))
        self.assertEqual(self.settled, [lookup])

    def test_a_warning_is_never_an_exception(self):
        warnings.simplefilter("error")
        lookup = self.submit(GONE, "answer")
        self.assertTrue(running.eventually(lambda: lookup.is_settled))
        with mock.patch.object(warnings, "warn", side_effect=OSError("a closed log")):
            _asking.warn("something")

    def test_the_thread_lives_as_long_as_there_are_questions(self):
        lookup = self.submit("answer")
        self.assertTrue(running.eventually(lambda: lookup.is_settled and not self.asker._asked))

    def test_a_forked_child_begins_without_questions(self):
        self.slow()
        child = os.fork()
        if child == 0:
            lookup = self.submit("answer")
            self.asker.wait(running.PATIENCE)
            os._exit(0 if lookup.answer == "answer" else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_a_process_ends_with_a_question_under_way(self):
        self.assertEqual(running.run_python(ENDS).strip(), "the end")
