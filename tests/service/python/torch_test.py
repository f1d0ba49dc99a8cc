"""cubind.torch on the CPU: torch's own formula, through the operators. Needs torch; without it nothing is run, and says so."""

import copy
import sys
import unittest
import warnings

import running

try:
    import torch
    import torch.nn.functional
except ImportError:
    print("torch is not installed: the tests of cubind.torch were not run", file=sys.stderr)
    sys.exit(77)

import cubind
import cubind.torch as operators
from cubind.torch import _rms_norm, _variants


def inputs(*shape, dtype=torch.float64):
    torch.manual_seed(0)
    x = torch.randn(*shape, dtype=dtype, requires_grad=True)
    w = torch.randn(shape[-1], dtype=dtype, requires_grad=True)
    return x, w


class Operators(unittest.TestCase):
    def test_the_backward_formula_is_the_derivative(self):
        x, w = inputs(3, 5, 8)
        self.assertTrue(torch.autograd.gradcheck(torch.ops.cubind.rms_norm, (x, w, 1e-6)))

    def test_forward_and_gradients_are_those_of_torch(self):
        for dtype, rtol in ((torch.float32, 1e-5), (torch.bfloat16, 1.6e-2), (torch.float16, 2e-3)):
            x, w = inputs(7, 64, dtype=dtype)
            ours, theirs = (
                torch.ops.cubind.rms_norm(x, w, 1e-6),
                torch.nn.functional.rms_norm(x, (64,), w, 1e-6),
            )
            torch.testing.assert_close(ours, theirs, rtol=rtol, atol=1e-5)
            dy = torch.randn_like(ours)
            for a, b in zip(torch.autograd.grad(ours, (x, w), dy), torch.autograd.grad(theirs, (x, w), dy)):
                torch.testing.assert_close(a, b, rtol=rtol, atol=2e-2 if dtype != torch.float32 else 1e-4)

    def test_opcheck(self):
        x, w = inputs(4, 16, dtype=torch.float32)
        torch.library.opcheck(torch.ops.cubind.rms_norm, (x, w, 1e-6))
        dy = torch.randn(4, 16)
        torch.library.opcheck(torch.ops.cubind.rms_norm_backward, (dy, x.detach(), w.detach(), 1e-6))

    def test_vmap_over_rows_and_over_weights(self):
        x, w = (t.detach() for t in inputs(3, 4, 8))
        ours = torch.func.vmap(lambda row: torch.ops.cubind.rms_norm(row, w, 1e-6), in_dims=1)(x)
        torch.testing.assert_close(ours, torch.nn.functional.rms_norm(x.movedim(1, 0), (8,), w, 1e-6))
        weights = torch.randn(5, 8, dtype=w.dtype)
        ours = torch.func.vmap(lambda one: torch.ops.cubind.rms_norm(x, one, 1e-6))(weights)
        expected = torch.stack([torch.nn.functional.rms_norm(x, (8,), one, 1e-6) for one in weights])
        torch.testing.assert_close(ours, expected)

    def test_zero_size_strided_and_meta_inputs(self):
        w = torch.ones(8)
        self.assertEqual(torch.ops.cubind.rms_norm(torch.empty(0, 8), w, 1e-6).shape, (0, 8))
        x = torch.randn(8, 4).t()
        torch.testing.assert_close(
            torch.ops.cubind.rms_norm(x, w, 1e-6), torch.nn.functional.rms_norm(x, (8,), w, 1e-6)
        )
        self.assertEqual(torch.ops.cubind.rms_norm(x.to("meta"), w.to("meta"), 1e-6).shape, (4, 8))

    def test_the_function_has_the_signature_of_torch(self):
        x, w = (t.detach() for t in inputs(4, 8, dtype=torch.float32))
        torch.testing.assert_close(operators.rms_norm(x, [8], w), torch.nn.functional.rms_norm(x, [8], w))
        torch.testing.assert_close(operators.rms_norm(x, [8]), torch.nn.functional.rms_norm(x, [8]))


class Modules(unittest.TestCase):
    def model(self):
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.RMSNorm(8), torch.nn.RMSNorm((4, 8)))

    def test_replace_swaps_and_undo_swaps_back(self):
        model, x = self.model(), torch.randn(4, 8)
        before, state = model(x), copy.deepcopy(model.state_dict())
        dry = operators.replace(model, dry_run=True, verbose=False)
        self.assertIs(type(model[1]), torch.nn.RMSNorm)
        done = operators.replace(model, verbose=False)
        self.assertEqual((dry.replaced, done.replaced), ([("1", "RMSNorm")],) * 2)
        self.assertEqual(done.kept, [("2", "RMSNorm", "it normalizes several dims")])
        self.assertIs(type(model[1]), operators.RMSNorm)
        torch.testing.assert_close(model(x), before)
        self.assertEqual(list(model.state_dict()), list(state))
        done.undo()
        self.assertIs(type(model[1]), torch.nn.RMSNorm)

    def test_a_model_trains_as_with_torch(self):
        losses = []
        for replaced in (False, True):
            model = self.model()
            if replaced:
                operators.replace(model, verbose=False)
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            torch.manual_seed(1)
            x, target = torch.randn(4, 8), torch.randn(4, 8)
            for _ in range(50):
                loss = (model(x) - target).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            losses.append(loss.item())
        self.assertAlmostEqual(losses[0], losses[1], places=5)


class Missing(unittest.TestCase):
    """A kernel that is not there."""

    def setUp(self):
        self.addCleanup(setattr, _variants.settings, "strict", False)
        self.addCleanup(setattr, _variants.settings, "client", None)
        operators.step()
        _variants._warned.clear()
        operators.use(cubind_client_of_nobody())

    def launch(self):
        return _rms_norm._forward.launch("bf16", 0, (4, 8), 0, (None, None, None, 1e-6))

    def test_it_is_warned_of_once_and_asked_for_again_after_a_step(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.assertEqual([self.launch(), self.launch()], [False, False])
            operators.step()
            self.assertFalse(self.launch())
        self.assertEqual(len(caught), 1)
        self.assertIn("torch's own formula is used", str(caught[0].message))

    def test_strict_raises(self):
        operators.strict()
        with self.assertRaises(cubind.CubindError):
            self.launch()


def cubind_client_of_nobody():
    return cubind.Client(f"unix://{running.SOURCE}/no.sock", timeout=2)


if __name__ == "__main__":
    unittest.main()
