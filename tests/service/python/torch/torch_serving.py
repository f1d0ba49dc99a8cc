"""For tests of operators whose daemon comes and goes: one daemon per test, and calls that tell whether they
were torch's own. Import torch_found first."""

import unittest

import cubind.torch as operators
import running
import torch
import torch_launches
from torch.nn import functional

SIZE = 4096  # of which a kernel is served
KEY = torch.bfloat16, -1, (), (SIZE,)


class Serving(unittest.TestCase):
    def setUp(self):
        self.daemon = self.enterContext(running.Daemon())
        self.client = self.daemon.connect()
        self.addCleanup(self.client.close)
        self.addCleanup(self.leave)
        self.enterContext(torch_launches.as_if_on_gpu())
        operators.strict(False)
        operators.use(self.client)
        operators.step()
        running.forget_warnings()
        self.driver = running.FakeDriver(3)

    def leave(self):
        operators.strict(True)  # drops all questions
        operators.use(None)
        operators.step()
        operators.strict(False)

    def tensors(self, size):
        torch.manual_seed(size)
        x = torch.randn(4, size, dtype=torch.bfloat16, requires_grad=True)
        return x, torch.randn(size, dtype=torch.bfloat16, requires_grad=True)

    def call(self, size):
        """Whether a forward pass was torch's own, to the last bit and with its gradients."""
        x, w = self.tensors(size)
        y = operators.rms_norm(x, (size,), w, 1e-6)
        theirs = functional.rms_norm(x, (size,), w, 1e-6)
        if type(y.grad_fn) is not type(theirs.grad_fn):
            return False
        gradients = [torch.autograd.grad(each.sum(), (x, w)) for each in (y, theirs)]
        return torch.equal(y, theirs) and all(map(torch.equal, *gradients))

    def serve(self):
        """A kernel in use."""
        self.call(SIZE)
        self.assertTrue(operators.wait(running.PATIENCE), operators.report())
        before = len(self.driver.launches())
        self.assertFalse(self.call(SIZE))
        self.assertEqual(len(self.driver.launches()), before + 1)
