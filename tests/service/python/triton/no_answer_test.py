"""Triton's autotuner with a cubind daemon that is absent, dies, stops or refuses: it costs a program nothing
but the choice."""

import signal
import unittest
import unittest.mock
import warnings

import triton_grpc_found  # noqa: F401  first: it looks for a Python with Triton and gRPC

# isort: split
import cubind
import cubind.triton
import grpc
import running
import triton_stub as stub
from fake_daemon import chosen, tuning, untuned
from triton.compiler.errors import CompilationError
from triton_asking import Case
from triton_stub import grid, tuned


class NoAnswer(Case):
    """Triton's own autotuner chooses."""

    def check(self, reason):
        kernel = tuned()

        def settled():
            self.call(kernel)
            return stub.Driver.benchmarked

        self.assertTrue(running.eventually(settled))
        self.assertEqual(stub.Driver.benchmarked, 2)
        self.assertIn(reason, cubind.triton.report())

    def test_without_a_job(self):
        self.fake(untuned("no agent has Triton 3.6.0"))
        self.check("Triton's own: it is not tuned: no agent has Triton 3.6.0")

    def test_if_no_agent_measures(self):
        for waits in (False, True):
            with self.subTest(waits=waits):
                stub.forget()
                self.fake(tuning("no_device", "no agent offers this GPU"), waits=waits)
                self.check("Triton's own: it is not tuned: no agent offers this GPU")

    def test_if_too_many_wait_already(self):
        self.fake(tuning(), patience=0.05)
        kernel = tuned()
        with stub.limit("_MOST_PENDING", 2):
            for n in (1000, 2000, 3000):
                self.call(kernel, n)
        self.assertEqual(stub.Driver.benchmarked, 2)
        report = cubind.triton.report()
        self.assertIn("1 times Triton's own: it is one of more than 2 that wait for their tuning", report)

    def test_if_there_is_nothing_to_wait_for(self):
        daemon = self.fake(grpc.StatusCode.UNAVAILABLE, waits=True)  # as of a daemon without an agent
        self.check("Triton's own: it is not tuned: as the test wants it")
        self.assertEqual(daemon.questions().count("wait"), 5)

    def test_after_an_error(self):
        self.fake(grpc.StatusCode.FAILED_PRECONDITION)
        self.check("Triton's own: it has no answer of the daemon: as the test wants it")

    def test_if_the_configuration_is_none_of_the_kernel(self):
        self.fake(chosen(7))
        self.check("configuration 7 is none of the kernel's")

    def test_without_a_daemon(self):
        self.install("unix:///tmp/no-such-socket")
        with self.assertWarnsRegex(
            RuntimeWarning, "Triton's own autotuner chooses.*no daemon answers there"
        ) as warned:
            warnings.simplefilter("always")
            self.check("no daemon answers there")
            self.call(tuned())
        said = [each for each in warned.warnings if "no daemon answers there" in str(each.message)]
        self.assertEqual(len(said), 1)

    def test_what_cannot_be_specified(self):
        self.fake(chosen(1))
        self.y = self.x
        self.check("Triton's own: it writes memory that x and y share")

    def test_what_triton_cannot_compile_is_told_in_a_line_and_raised_by_triton(self):
        self.fake(chosen(1))
        with self.assertRaises(CompilationError):
            tuned()[grid](self.x, self.y, 1000, None)
        self.assertRegex(
            cubind.triton.report(),
            "(?m)^.*scale: 1 times .* has no TTIR: CompilationError: Attribute.*'type'.*$",
        )

    def test_without_a_definition(self):
        self.fake(chosen(1))
        with stub.limit("spec_of", unittest.mock.Mock(side_effect=ZeroDivisionError("a fault"))):
            self.check("has no definition: ZeroDivisionError: a fault")


class RealDaemon(Case):
    """Its agent has no Triton."""

    def setUp(self):
        super().setUp()
        self.daemon = self.enterContext(running.Daemon())

    def test_it_keeps_the_definition(self):
        self.install(self.daemon.address)
        kernel = tuned()
        self.call(kernel)
        with cubind.connect(self.daemon.address) as client:
            names = lambda: [each["name"] for each in client.kernels(defined=True)]  # noqa: E731
            known = lambda: any(name.startswith("scale_") for name in names())  # noqa: E731
            self.assertTrue(running.eventually(known))

    def test_one_that_dies_costs_nothing_but_the_choice(self):
        self.install(self.daemon.address, patience=0.05)
        self.call(tuned())
        self.daemon.kill()
        self.check_calls()

    def test_one_that_is_stopped_costs_nothing_but_the_choice(self):
        self.install(self.daemon.address, patience=0.05)
        self.daemon.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.daemon.process.send_signal, signal.SIGCONT)
        self.check_calls()

    def test_a_call_that_waits_notices_that_it_is_stopped(self):
        self.install(self.daemon.address, waits=True)
        self.daemon.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.daemon.process.send_signal, signal.SIGCONT)
        self.call(tuned())
        self.assertEqual(stub.Driver.benchmarked, 2)
        self.assertIn("Triton's own: it has no answer of the daemon", cubind.triton.report())

    def check_calls(self):
        """Triton chooses in the end, and no call waits for longer than the patience."""
        kernel = tuned()

        def settled():
            self.call(kernel)
            return stub.Driver.benchmarked >= 2

        with running.waits(self.asking._asker) as waits:
            self.assertTrue(running.eventually(settled))
            for n in range(100, 110):
                self.call(kernel, n)
        self.assertLess(sum(waits), 2.1 * 0.05)
        self.assertIn("Triton's own: it has no answer of the daemon", cubind.triton.report())
