"""cubind.torch.tune(): what a model needs, from a run that launches nothing. Tensors lie on the CPU. Needs
torch."""

import unittest
import warnings
from unittest import mock

import torch_found  # first: it looks for a Python with torch

# isort: split
import cubind.torch as operators
import torch
from cubind import _asking
from cubind.torch import _collection, _operator, _rms_norm
from cubind.torch import _tune as tuning
from cubind.tuning import TuneResult


class Norm(torch.nn.Module):
    """What a model on a GPU does, without one; random and with a buffer."""

    def __init__(self, *sizes):
        super().__init__()
        self.weights = torch.nn.ParameterList(torch.ones(size) for size in sizes)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, rows):
        self.calls += 1
        torch.rand(1)
        for weight in self.weights:
            x = torch.ones(rows, weight.shape[0])
            if _rms_norm._is_there(x, weight, weight.requires_grad):
                raise AssertionError("there is a kernel")
        return x


class FakeClient:
    """Tunes everything at once."""

    def __init__(self):
        self.shapes = []

    def tune(self, shapes, progress):
        self.shapes += shapes
        return [TuneResult(s["kernel"], s, "gpu", "done", {}, 1.0, False, "") for s in shapes]

    def ask(self, kernel, problem, question, gpu=None):
        raise _operator.FailedPreconditionError("no driver", "device")


def norm(kernel, n, d):
    return {"kernel": kernel, "N": n, "D": d, "T": "f32"}


class Tune(unittest.TestCase):
    def setUp(self):
        self.client = FakeClient()
        self.enterContext(mock.patch.object(_operator.settings, "client", self.client))
        self.enterContext(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        self.addCleanup(operators.forget_missing)
        _asking._warned.clear()

    def tune(self, model, *inputs, **options):
        return operators.tune(model, *inputs, progress=False, **options)

    def test_the_kernels_of_both_passes_are_tuned_once_each(self):
        model = Norm(8, 16, 8)
        results = self.tune(model, 4)
        forward = [norm("rmsnorm_forward", 4, d) for d in (8, 16)]
        backward = [norm("rmsnorm_backward", 4, d) for d in (8, 16)]
        self.assertCountEqual(self.client.shapes, forward + backward)
        self.assertEqual(len(results), 4)

    def test_without_a_backward_pass_its_kernels_are_left_out(self):
        self.tune(Norm(8), 4, backward=False)
        self.assertEqual(self.client.shapes, [norm("rmsnorm_forward", 4, 8)])

    def test_every_size_of_a_run_is_tuned(self):
        model = Norm(8)
        self.tune(lambda: (model(4), model(6)), backward=False)
        self.assertEqual(self.client.shapes, [norm("rmsnorm_forward", n, 8) for n in (4, 6)])

    def test_buffers_gradients_and_random_numbers_are_as_before(self):
        model = Norm(8)
        torch.manual_seed(3)
        state = torch.get_rng_state()
        self.tune(model, 4)
        self.assertTrue(torch.equal(torch.get_rng_state(), state))
        self.assertEqual(model.calls.item(), 0)
        self.assertIsNone(model.weights[0].grad)

    def test_kernels_in_use_are_used_again_after_a_run_that_fails(self):
        known = {"key": ()}
        with mock.patch.object(_rms_norm._forward._variants, "by_key", known):
            with self.assertRaises(ZeroDivisionError):
                self.tune(lambda: 1 // 0)
            self.assertIs(_rms_norm._forward._variants.by_key, known)
        self.assertIsNone(_collection.current.collection)

    def test_a_model_without_operators_is_warned_of(self):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            self.assertEqual(self.tune(torch.nn.Linear(2, 2), torch.ones(1, 2)), [])
            self.assertEqual(self.tune(torch.sin, torch.ones(1, 2)), [])
        self.assertIn("its parameters are not on a GPU", str(said[0].message))
        self.assertIn("call replace(model) first", str(said[1].message))

    def test_a_run_without_labels_of_a_model_with_a_loss_is_warned_of(self):
        class Causal(Norm):
            _is_cubinds = True  # as replace() marks it
            loss_function = property(lambda model: None)

        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for backward, expected in ((False, False), (True, True)):
                self.tune(Causal(8), 4, backward=backward)
                told = any("the run computed no loss" in str(one.message) for one in said)
                self.assertEqual(told, expected)

    def test_cubind_turned_off_tunes_nothing(self):
        with mock.patch.object(tuning, "IS_OFF", True):
            self.assertEqual(self.tune(Norm(8), 4), [])
        self.assertEqual(self.client.shapes, [])


if __name__ == "__main__":
    torch_found.main()
