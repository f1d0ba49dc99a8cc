"""Kernels in use, which are replaced between two steps. Needs torch."""

import dataclasses
import threading
import time
import warnings
from unittest import mock

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
import cubind
import cubind.torch as operators
import running
import torch
from cubind import _asking
from cubind.torch import _operator, _variants
from torch_launches import kernel
from torch_serving import KEY, SIZE, Serving

FORWARD, BACKWARD = kernel("rmsnorm_forward"), kernel("rmsnorm_backward")


class Renewals(Serving):
    def test_a_variant_in_use_is_replaced_between_steps_and_stays_without_a_daemon(self):
        self.serve()
        first = FORWARD._variants.by_key[KEY]
        old = mock.patch.object(_variants.Loaded, "is_current", False)
        with old:
            operators.step()
            self.assertTrue(_operator.asker.wait(running.PATIENCE))
            self.call(SIZE)
            self.assertEqual(FORWARD._variants.by_key[KEY], first)
        operators.step()
        self.assertNotEqual(FORWARD._variants.by_key[KEY], first)
        self.daemon.kill()
        self.client._answers.drop({"rmsnorm_forward"})
        with old, warnings.catch_warnings(action="ignore"):
            for _ in range(3):
                operators.step()
                self.assertFalse(self.call(SIZE))
            self.assertTrue(running.eventually(lambda: _operator.asker.failure is not None))
            operators.step()
            self.assertFalse(self.call(SIZE))

    def test_sizes_that_grow_are_not_asked_for_without_end(self):
        forward = kernel("softmax_forward")
        before = forward.asked
        for rows in range(1, 61):  # nothing is tuned for them
            operators.softmax(torch.ones(rows, 1000, dtype=torch.bfloat16), -1)
            self.assertTrue(_operator.asker.wait(running.PATIENCE))
        self.assertEqual(forward.asked - before, 16)

    def test_a_renewal_with_an_error_of_its_own_is_asked_again_after_a_while_alone(self):
        self.serve()
        asked = []

        def refuse(kernel, *_, **__):
            asked.append(kernel)
            raise cubind.NotFoundError("nothing", "problem")

        def steps():
            for _ in range(4):
                operators.step()
                self.assertTrue(_operator.asker.wait(running.PATIENCE))
            return asked.count("rmsnorm_forward")

        old = mock.patch.object(_variants.Loaded, "is_current", False)
        with (
            old,
            mock.patch.object(_operator, "_RETRY_AFTER", 600),
            mock.patch.object(self.client, "ask", refuse),
        ):
            FORWARD._retried_at = time.monotonic()
            self.assertEqual(steps(), 1)
            FORWARD._retried_at -= 600
            self.assertEqual(steps(), 2)
            self.assertFalse(self.call(SIZE))

    def test_a_renewal_that_cannot_be_loaded_is_not_loaded_at_every_step(self):
        self.serve()
        broken = mock.patch.object(_operator, "load", side_effect=cubind.DataLossError("no cubin"))
        old = mock.patch.object(_variants.Loaded, "is_current", False)
        with old, mock.patch.object(_operator, "_RETRY_AFTER", 600), broken as load:
            for operator in (FORWARD, BACKWARD):
                operator._retried_at = time.monotonic()
            with warnings.catch_warnings(action="ignore"):
                for _ in range(4):
                    operators.step()
                    self.assertTrue(_operator.asker.wait(running.PATIENCE))
            self.assertEqual(load.call_count, 2)  # for each pass
            self.assertFalse(self.call(SIZE))

    def test_a_renewal_that_is_answered_while_they_are_taken_is_taken_later(self):
        self.serve()
        (known,) = FORWARD._variants.by_key[KEY]
        found = dataclasses.replace(known.found)

        class Late(_asking.Lookup):
            """Answered just after the first look at its answer."""

            @property
            def answer(self):
                seen, self._seen = self._seen, found
                return seen

            @answer.setter
            def answer(self, seen):
                self._seen = seen

        FORWARD._renewals._under_way.append((KEY, known.dims, Late(None, None)))
        FORWARD._take_renewals()
        self.assertIsNot(FORWARD._variants.by_key[KEY][0].found, found)
        FORWARD._take_renewals()
        self.assertIs(FORWARD._variants.by_key[KEY][0].found, found)

    def test_another_thread_may_load_a_variant_during_a_step(self):
        self.serve()
        threads = []
        self.addCleanup(
            lambda: [FORWARD._variants.by_key.pop((KEY[0], -1, (), (n,)), None) for n in range(9)]
        )

        def load(number):
            with FORWARD._lock:
                FORWARD._variants.by_key[KEY[0], -1, (), (number,)] = ()

        def look(_):
            threads.append(threading.Thread(target=load, args=[len(threads)]))
            threads[-1].start()
            threads[-1].join(0.1)
            return True

        with mock.patch.object(_variants.Loaded, "is_current", property(look)):
            FORWARD.renew()
        for thread in threads:
            thread.join(running.PATIENCE)
        self.assertGreater(len(threads), 0)
