"""What operators cost when the daemon is absent, killed, stopped or wrong: nothing but the kernels. The fake
driver takes the launches; tensors lie on the CPU. Needs torch."""

import contextlib
import signal
import sys
import threading
import unittest
import warnings
from unittest import mock

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
import cubind
import cubind.torch as operators
import running
import torch
from cubind import _connected, _core
from cubind.torch import _operator, _steps, _variants
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch_launches import graph_on_gpu, kernel
from torch_serving import KEY, SIZE, Serving

sys.path.append(str(running.SOURCE / "bench/common"))
import wrong_daemon

TIMEOUT = 4.0

OFF = """
import sys, cubind, cubind.torch as operators, torch
assert "grpc" not in sys.modules
from cubind.torch import _call, _operator
_call.are_plain = lambda tensors: True
cubind.connect = _operator.asker.submit = None  # they must not be called
operators.strict()
x, w = torch.randn(4, 8, requires_grad=True), torch.ones(8)
assert "RmsNorm" not in str(operators.rms_norm(x, (8,), w).grad_fn)
torch.testing.assert_close(operators.layer_norm(x, (8,), w, w), torch.nn.functional.layer_norm(x, (8,), w, w))
torch.testing.assert_close(operators.softmax(x), x.softmax(-1))
torch.testing.assert_close(operators.linear(x, x), x @ x.t())
torch.testing.assert_close(operators.weighted_sum(x, w), x @ w)
total = operators.add_rms_norm(x, x, w)[1]
torch.testing.assert_close(total, x + x)
operators.layer_norm_linear(x, w, w, x)
q = torch.randn(1, 2, 4, 64).bfloat16()
operators.scaled_dot_product_attention(q, q, q)
torch.ops.cubind.rms_norm(x, w, 1e-6)
model = torch.nn.Sequential(torch.nn.RMSNorm(8))
done = operators.replace(model, verbose=False)
assert type(model[0]) is torch.nn.RMSNorm
print(done.replaced, done.kept, operators.wait(), operators.report())
"""

REPORT = """
import sys, cubind.torch as operators, torch
assert "grpc" in sys.modules  # its import by another thread would hold up the first call
from cubind.torch import _call
_call.are_plain = lambda tensors: True
operators.softmax(torch.randn(4, 8))
print("done", flush=True)
"""

# A version of torch that the tests have not met: a piece is gone, or says nothing any more.
NEWER = """
import sys, torch
if sys.argv[1] == "gone":
    del torch._C._is_any_autocast_enabled
else:
    torch._C._len_torch_dispatch_stack = lambda: 0
from cubind import _torch_private
import cubind.torch as operators
from cubind.torch import _dispatch
assert not _torch_private.is_known
for name in ("rms_norm", "layer_norm", "softmax"):
    assert getattr(_torch_private, f"{name}_backward") is None, name
assert not _dispatch.is_quiet()
x, w = torch.randn(4, 8, requires_grad=True), torch.ones(8)
y = torch.ops.cubind.rms_norm(x, w, 1e-6)
torch.testing.assert_close(y, torch.nn.functional.rms_norm(x, (8,), w, 1e-6))
y.sum().backward()
from cubind.torch import _softmax
z, dz = x.softmax(-1), torch.randn(4, 8)
torch.testing.assert_close(_softmax._backward_formula(dz, z), torch.autograd.grad(z, x, dz)[0])
operators.rms_norm(x, (8,), w)
assert "goes through its dispatcher" in operators.report(), operators.report()
print(_torch_private.stream_of(0))
"""


@contextlib.contextmanager
def capturing():
    """Meanwhile a graph is captured."""
    with (
        mock.patch.object(_operator, "is_capturing", return_value=True),
        mock.patch.object(_steps, "is_capturing", return_value=True),
    ):
        yield


class Harmless(Serving):
    def lose(self, event):
        """A loop of calls, `event` in its middle: they wait for 50 ms in all, what had a kernel keeps it, all
        others are torch's own, and there is one warning."""
        self.serve()
        self.client.timeout, before = TIMEOUT, len(self.driver.launches())
        with warnings.catch_warnings(record=True, action="always") as caught:
            event()
            with running.waits(_operator.asker) as waits:
                for step in range(24):
                    self.assertTrue(self.call(8 * (step + 1)), step)  # each has a kernel of its own
                    self.assertFalse(self.call(SIZE))
                    operators.step()
            self.waited = sum(waits)
            self.assertLess(self.waited, 0.051)
            self.assertTrue(running.eventually(lambda: caught))
            self.assertFalse(operators.wait(2 * TIMEOUT))  # once more: it is not warned of again
        self.assertEqual(len(self.driver.launches()), before + 24)
        (warning,) = [str(one.message) for one in caught]
        for told in ("torch's own operators are used", self.daemon.address, "CUBIND=0"):
            self.assertIn(told, warning)
        return warning

    def test_a_daemon_that_is_killed(self):
        self.lose(self.daemon.kill)

    def test_a_compiled_program_whose_daemon_is_killed(self):
        operator = torch.ops.cubind.rms_norm
        backend = graph_on_gpu
        compiled = torch.compile(lambda x, w: operator(x, w, 1e-6), backend=backend, fullgraph=True)

        def launches(size):
            x, w = (tensor.detach() for tensor in self.tensors(size))
            before, y = len(self.driver.launches()), compiled(x, w)
            launched = len(self.driver.launches()) - before
            if not launched:
                torch.testing.assert_close(y, torch.nn.functional.rms_norm(x, (size,), w, 1e-6))
            return launched

        self.serve()
        self.assertEqual(launches(SIZE), 1)
        self.daemon.kill()
        with warnings.catch_warnings(record=True, action="always") as caught:
            self.assertEqual([launches(size) for size in (SIZE, 8, 16, 24, SIZE)], [1, 0, 0, 0, 1])
            told = "torch's own operators are used"
            self.assertTrue(running.eventually(lambda: any(told in str(one.message) for one in caught)))
            self.assertFalse(operators.wait(2 * TIMEOUT))
        self.assertEqual(sum(told in str(one.message) for one in caught), 1)

    def test_a_daemon_that_is_stopped(self):
        self.addCleanup(self.daemon.process.send_signal, signal.SIGCONT)
        warning = self.lose(lambda: self.daemon.process.send_signal(signal.SIGSTOP))
        self.assertIn(f"no answer within {TIMEOUT:g} s", warning)
        self.assertGreater(self.waited, 0.04)

    def test_a_daemon_that_answers_wrongly(self):
        problem = {"N": 4, "D": SIZE, "T": "bf16"}
        reply = wrong_daemon.reply_of(self.client, "rmsnorm_forward", problem, "nvidia-h200")

        def replace():
            self.daemon.kill()
            (self.daemon.folder / "cubind.sock").unlink(missing_ok=True)
            self.wrong = wrong_daemon.WrongDaemon(self.daemon.address, reply)
            self.addCleanup(self.wrong.close)

        self.lose(replace)
        self.assertGreaterEqual(self.wrong.asked, 1)

    def test_another_daemon_takes_over_what_the_first_one_owes(self):
        self.daemon.kill()
        with warnings.catch_warnings(action="ignore"):
            self.assertTrue(self.call(SIZE))
            self.assertTrue(running.eventually(lambda: _operator.asker.failure is not None))
        with running.Daemon() as daemon, daemon.connect() as client:
            operators.use(client)
            self.assertTrue(operators.wait(running.PATIENCE), operators.report())
            self.assertFalse(self.call(SIZE))

    def test_wait_loads_the_kernels_of_both_passes(self):
        self.serve()
        self.assertTrue(all(kernel(f"rmsnorm_{way}").knows(KEY) for way in ("forward", "backward")))
        self.assertRegex(
            operators.report(), r"rmsnorm_forward: asked \d+, launched \d+, torch's own \d+(\n|$)"
        )

    def test_a_kernel_that_cannot_be_loaded_is_told_and_torchs_own_used(self):
        broken = mock.patch.object(_operator, "load", side_effect=cubind.DataLossError("no cubin"))
        with broken, warnings.catch_warnings(record=True, action="always") as caught:
            self.call(SIZE)
            self.assertFalse(operators.wait(running.PATIENCE))
            self.assertTrue(self.call(SIZE))
        texts = {str(one.message) for one in caught}
        self.assertEqual(
            texts,
            {
                f"cubind: rmsnorm_{way}: torch's own operator is used: no cubin"
                for way in ("forward", "backward")
            },
        )
        self.assertTrue(operators.wait(running.PATIENCE))
        self.assertFalse(self.call(SIZE))

    def test_an_error_of_one_problem_is_told_once_and_is_not_that_of_another_one(self):
        ask, errors = self.client.ask, []

        def refuse(kernel, problem, *others, **named):
            if problem["N"] == 4:
                errors.append(cubind.NotFoundError(f"nothing for {len(errors)}", "problem"))
                raise errors[-1]
            return ask(kernel, problem, *others, **named)

        with (
            warnings.catch_warnings(record=True, action="always") as caught,
            mock.patch.object(self.client, "ask", refuse),
        ):
            for _ in range(3):
                self.assertTrue(self.call(SIZE))
                self.assertFalse(operators.wait(running.PATIENCE))
            self.assertIn("nothing for", operators.report())
            kernel("rmsnorm_forward")._retried_at = 0.0  # as if a second had passed
            operators.step()
            x, w = self.tensors(SIZE)
            x = x.repeat(100, 1)
            with torch.no_grad():
                operators.rms_norm(x, (SIZE,), w, 1e-6)
                self.assertTrue(running.eventually(self.is_loaded_after_a_call(x, w)))
        self.assertEqual(len(caught), 2)  # for each pass

    def test_an_answer_for_other_rows_leaves_a_call_to_torch(self):
        self.call(SIZE)
        self.assertTrue(_operator.asker.wait(running.PATIENCE))
        x, w = self.tensors(SIZE)
        x = x.repeat(100, 1)
        with mock.patch.object(self.client, "ask", side_effect=cubind.NotFoundError("nothing", "problem")):
            y = operators.rms_norm(x, (SIZE,), w, 1e-6)
        self.assertIs(type(y.grad_fn), type(functional.rms_norm(x, (SIZE,), w, 1e-6).grad_fn))
        self.assertFalse(self.call(SIZE))

    def is_loaded_after_a_call(self, x, w):
        def call():
            operators.rms_norm(x, (SIZE,), w, 1e-6)
            return bool(self.driver.launches())

        return call

    def test_nothing_is_asked_or_loaded_while_a_graph_is_captured(self):
        with capturing():
            self.assertTrue(self.call(SIZE))
            with self.assertRaisesRegex(cubind.FailedPreconditionError, "captured: call it before"):
                operators.wait()
            operators.strict()
            with self.assertRaisesRegex(cubind.FailedPreconditionError, "once before the capture"):
                self.call(SIZE)
            operators.strict(False)
        self.assertEqual(self.client.calls, 0)
        self.call(SIZE)
        lookups = kernel("rmsnorm_forward")._lookups
        self.assertTrue(running.eventually(lambda: all(one.answer for one, _ in lookups.values())))
        if lookups:  # not loaded within 50 ms
            modules = self.driver.modules()
            with capturing():
                self.assertTrue(self.call(SIZE))
            self.assertEqual(self.driver.modules(), modules)
        self.assertFalse(self.call(SIZE))

    def test_an_error_for_some_rows_leaves_a_question_to_others_and_is_asked_again(self):
        ask, refused = self.client.ask, []

        def refuse(kernel, problem, *others, **named):
            if problem["N"] == 4:
                refused.append(kernel)
                raise cubind.NotFoundError("nothing", "problem")
            return ask(kernel, problem, *others, **named)

        x, w = self.tensors(SIZE)
        few, many = ((x,), (x, x.repeat(100, 1)))

        def steps(inputs):
            for _ in range(4):
                for each in inputs:
                    operators.rms_norm(each, (SIZE,), w, 1e-6)
                self.assertTrue(_operator.asker.wait(running.PATIENCE))
                operators.step()

        retries = mock.patch.object(_operator, "_RETRY_AFTER", 0.0)
        ignored = warnings.catch_warnings(action="ignore")
        with ignored, torch.no_grad(), retries, mock.patch.object(self.client, "ask", refuse):
            steps(few)
            self.assertGreaterEqual(len(refused), 2)
            self.assertFalse(self.driver.launches())
            steps(many)
        self.assertTrue(self.driver.launches())

    def test_a_client_that_is_given_does_not_wait_for_a_connection_that_hangs(self):
        begun, go, found = threading.Event(), threading.Event(), []
        self.addCleanup(go.set)

        def hang():
            begun.set()
            go.wait(running.PATIENCE)
            return self.client

        def connect():
            found.append(_variants.settings.connected())

        operators.use(None)
        with mock.patch.object(_connected, "connect", hang):
            first, second = threading.Thread(target=connect), threading.Thread(target=connect)
            first.start()
            self.assertTrue(begun.wait(running.PATIENCE))
            operators.use(self.client)
            second.start()
            second.join(running.PATIENCE / 4)
            self.assertEqual(found, [self.client])
            go.set()
            first.join(running.PATIENCE)


class ComputedAgain(Serving):
    """In a process of its own: from the first such layer on, calls take kernels otherwise."""

    def layers_before_their_kernels(self):
        """The forward pass of a layer whose kernels come before the backward pass; a call that runs it."""
        x, w = self.tensors(SIZE)

        def layers():
            for _ in range(2):
                y = checkpoint(operators.rms_norm, x, (SIZE,), w, 1e-6, use_reentrant=False)
            return y

        ask, go = self.client.ask, threading.Event()
        self.addCleanup(go.set)

        def late(*arguments, **named):
            go.wait(running.PATIENCE)
            return ask(*arguments, **named)

        with mock.patch.object(self.client, "ask", late):
            y = layers()
            go.set()
            self.assertTrue(_operator.asker.wait(running.PATIENCE))
            with torch.no_grad():
                operators.rms_norm(x, (SIZE,), w, 1e-6)  # as by a teacher
            layers().sum().backward()  # of this step too
            y.sum().backward()
        self.assertFalse(self.driver.launches())
        return layers, w

    def test_a_kernel_that_comes_before_a_layer_is_computed_again_is_used_after_the_optimizers_step(self):
        layers, w = self.layers_before_their_kernels()
        torch.optim.SGD([w], lr=0.1).step()
        layers().sum().backward()
        self.assertTrue(self.driver.launches())

    def test_a_kernel_that_comes_before_a_layer_is_computed_again_is_used_after_step(self):
        layers, _ = self.layers_before_their_kernels()
        operators.step()
        layers().sum().backward()
        self.assertTrue(self.driver.launches())


class Devices(unittest.TestCase):
    def test_a_gpu_is_described_by_its_number_whatever_thread_asks(self):
        running.FakeDriver(0)
        self.assertEqual(running.together(_core.gpu, [0]), [_core.gpu()])  # on a thread without a context
        with self.assertRaisesRegex(cubind.FailedPreconditionError, "1 GPUs, and none has number 3"):
            _core.gpu(3)


class Clients(unittest.TestCase):
    def setUp(self):
        self.made = [cubind.Client(f"unix:///daemon/{number}") for number in range(2)]
        self.enterContext(mock.patch.object(_connected, "connect", side_effect=self.made))
        self.settings = _variants.Settings()

    def lose(self):
        with self.assertRaises(cubind.UnavailableError), self.settings.asked() as client:
            raise cubind.UnavailableError("no daemon answers there", client.address)

    def test_a_daemon_that_was_found_and_does_not_answer_is_looked_for_again(self):
        self.lose()
        self.assertIs(self.settings.connected(), self.made[1])

    def test_a_client_that_was_given_stays(self):
        given = cubind.Client("unix:///given")
        self.settings.use(given)
        self.lose()
        self.assertIs(self.settings.connected(), given)

    def test_a_world_size_that_is_no_number_is_that_of_one_process(self):
        for value, strict in (("", False), ("1", False), ("abc", False), ("2", True)):
            with mock.patch.dict("os.environ", WORLD_SIZE=value):
                self.assertEqual(_variants.Settings().strict, strict, value)


class Alone(unittest.TestCase):
    """Processes of their own."""

    def test_cubind_0_is_torch_alone(self):
        printed = running.run_python(OFF, CUBIND="0")
        why = "CUBIND=0 turns cubind off"
        self.assertEqual(printed.strip(), f"[] [('0', 'RMSNorm', '{why}')] True cubind: {why}")

    def test_a_report_is_printed_at_the_end(self):
        command = ["-W", "ignore", "-c", REPORT]
        result = running.run_python_for_both(command, CUBIND_REPORT="1", CUBIND_EMBEDDED="0")
        self.assertEqual(result.stdout, "done\n")
        first, line = result.stderr.strip().splitlines()
        self.assertRegex(first, r"^cubind: no daemon; calls waited \d+ ms for answers$")
        self.assertRegex(
            line, r"^cubind: softmax_forward: asked 0, launched 0, torch's own 1 \(.*CUBIND_EMBEDDED=0"
        )

    def test_a_report_of_cpu_tensors_alone_speaks_of_no_daemon(self):
        program = (
            "import cubind.torch as operators, torch\n"
            "operators.softmax(torch.randn(4, 8))\n"
            "print(operators.report())"
        )
        printed = running.run_python(program)
        self.assertEqual(
            printed, "cubind: no operator needed a kernel, as with CPU tensors: the daemon was not asked\n"
        )

    def test_a_torch_that_is_not_known_goes_the_slow_way(self):
        for change in ("gone", "silent"):
            self.assertEqual(running.run_python(NEWER, change).strip(), "0")
