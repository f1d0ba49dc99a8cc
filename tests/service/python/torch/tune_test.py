"""cubind.torch.tune(): what a model needs, from a run that launches nothing. Tensors lie on the CPU. Needs
torch."""

import unittest
import warnings
from unittest import mock

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
import cubind
import cubind.torch as operators
import running
import torch
import torch_launches
from cubind.tuning import TuneResult
from transformers_found import needs_transformers, transformers


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
            operators.rms_norm(x, weight.shape, weight)
        return x


class FakeClient:
    """Tunes everything at once."""

    def __init__(self):
        self.shapes = []

    def tune(self, shapes, progress):
        self.shapes += shapes
        return [TuneResult(s["kernel"], s, "gpu", "done", {}, 1.0, False, "") for s in shapes]

    def ask(self, kernel, problem, question, gpu=None):
        raise cubind.FailedPreconditionError("no driver", "device")


def norm(kernel, n, d):
    return {"kernel": kernel, "N": n, "D": d, "T": "f32"}


class Tune(unittest.TestCase):
    def setUp(self):
        self.client = FakeClient()
        operators.use(self.client)
        self.addCleanup(operators.use, None)
        self.enterContext(torch_launches.as_if_on_gpu())
        self.enterContext(warnings.catch_warnings(record=True, action="always"))
        running.forget_warnings()

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

    @needs_transformers
    def test_attention_of_a_model_of_transformers_is_tuned_for_both_passes(self):
        sizes = {"vocab_size": 64, "num_hidden_layers": 2, "hidden_size": 128, "intermediate_size": 48}
        heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
        model = transformers.LlamaModel(transformers.LlamaConfig(**sizes, **heads)).bfloat16()
        operators.replace(model, verbose=False)
        self.tune(model, torch.arange(14).view(2, 7))
        heads = {"B": 2, "HQ": 2, "HKV": 1, "SQ": 7, "SK": 7, "D": 64, "T": "bf16"}
        heads |= {"CAUSAL": 1, "LEFT": 0, "RIGHT": 0, "SOFT_CAP": 0}
        for name in ("flash_attention_forward", "flash_attention_backward"):
            self.assertIn({"kernel": name, **heads}, self.client.shapes)

    def test_every_size_of_a_run_is_tuned(self):
        model = Norm(8)
        self.tune(lambda: (model(4), model(6)), backward=False)
        self.assertEqual(self.client.shapes, [norm("rmsnorm_forward", n, 8) for n in (4, 6)])

    def test_of_many_sizes_eight_are_tuned_from_the_smallest_to_the_largest(self):
        model = Norm(8)
        self.tune(lambda: [model(n) for n in range(1, 258)], backward=False)
        self.assertEqual([shape["N"] for shape in self.client.shapes], [1, 37, 74, 110, 147, 183, 220, 257])

    def test_buffers_gradients_and_random_numbers_are_as_before(self):
        model = Norm(8)
        torch.manual_seed(3)
        state = torch.get_rng_state()
        self.tune(model, 4)
        self.assertTrue(torch.equal(torch.get_rng_state(), state))
        self.assertEqual(model.calls.item(), 0)
        self.assertIsNone(model.weights[0].grad)

    def test_a_model_without_operators_is_warned_of(self):
        with warnings.catch_warnings(record=True, action="always") as said:
            self.assertEqual(self.tune(torch.nn.Linear(2, 2), torch.ones(1, 2)), [])
            self.assertEqual(self.tune(torch.sin, torch.ones(1, 2)), [])
            with mock.patch.object(torch, "is_autocast_enabled", return_value=True):
                self.assertEqual(self.tune(torch.sin, torch.ones(1, 2)), [])
        self.assertIn("its parameters are not on a GPU", str(said[0].message))
        self.assertIn("call replace(model) first", str(said[1].message))
        self.assertIn("under autocast all functions are PyTorch's", str(said[2].message))
        running.forget_warnings()
        with self.assertWarnsRegex(RuntimeWarning, "its parameters are not on a GPU"):
            self.tune(torch.nn.Linear(2, 2).forward, torch.ones(1, 2))  # as model.generate

    def test_a_run_without_labels_of_a_model_with_a_loss_is_warned_of(self):
        class Causal(Norm):
            _is_cubinds = True  # as replace() marks it
            loss_function = property(lambda model: None)

        with warnings.catch_warnings(record=True, action="always") as said:
            for backward, expected in ((False, False), (True, True)):
                self.tune(Causal(8), 4, backward=backward)
                told = any("the run computed no loss" in str(one.message) for one in said)
                self.assertEqual(told, expected)

    def test_cubind_turned_off_tunes_nothing(self):
        program = "import cubind.torch; print(cubind.torch.tune(lambda: 1 // 0))"
        self.assertEqual(running.run_python(program, CUBIND="0"), "[]\n")
