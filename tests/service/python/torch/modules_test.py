"""The modules of cubind.torch, models that get them, and missing kernels; on the CPU. Needs
torch."""

import contextlib
import copy
import inspect
import pickle
import unittest
import warnings

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
import cubind
import cubind.torch as operators
import running
import torch
from torch_launches import on_gpu


class Batches(unittest.TestCase):
    def test_vmap_over_rows_and_over_weights(self):
        torch.manual_seed(0)
        x, w = torch.randn(3, 4, 8), torch.randn(8)
        ours = torch.func.vmap(lambda row: torch.ops.cubind.rms_norm(row, w, 1e-6), in_dims=1)(x)
        torch.testing.assert_close(ours, torch.nn.functional.rms_norm(x.movedim(1, 0), (8,), w, 1e-6))
        weights = torch.randn(5, 8)
        ours = torch.func.vmap(lambda one: torch.ops.cubind.rms_norm(x, one, 1e-6))(weights)
        expected = torch.stack([torch.nn.functional.rms_norm(x, (8,), one, 1e-6) for one in weights])
        torch.testing.assert_close(ours, expected)


class Modules(unittest.TestCase):
    def model(self):
        torch.manual_seed(0)
        return torch.nn.Sequential(
            torch.nn.Linear(8, 8),
            torch.nn.RMSNorm(8),
            torch.nn.RMSNorm((4, 8)),
            torch.nn.LayerNorm(8),
            torch.nn.LayerNorm(8, bias=False),
            torch.nn.RMSNorm(8, elementwise_affine=False),
        )

    def test_replace_swaps_and_undo_swaps_back(self):
        model, x = self.model(), torch.randn(4, 8)
        before, state = model(x), copy.deepcopy(model.state_dict())
        dry = operators.replace(model, dry_run=True, verbose=False)
        self.assertIs(type(model[1]), torch.nn.RMSNorm)
        self.assertIn("1: RMSNorm would be replaced", str(dry))
        done = operators.replace(model, verbose=False)
        self.assertIn("1: RMSNorm replaced", str(done))
        self.assertEqual((dry.replaced, done.replaced), ([("1", "RMSNorm"), ("3", "LayerNorm")],) * 2)
        kept = [
            ("2", "RMSNorm", "it normalizes several dims"),
            ("4", "LayerNorm", "it has no bias"),
            ("5", "RMSNorm", "it has no weight"),
        ]
        self.assertEqual(done.kept, kept)
        self.assertIsInstance(model[1], operators.RMSNorm)
        self.assertIsInstance(model[3], operators.LayerNorm)
        torch.testing.assert_close(model(x), before)
        self.assertEqual(list(model.state_dict()), list(state))
        done.undo()
        self.assertIs(type(model[1]), torch.nn.RMSNorm)
        self.assertIs(type(model[0]), torch.nn.Linear)

    def test_a_pickled_model_comes_back_as_torchs_and_a_copy_as_it_is(self):
        model, x = self.model(), torch.randn(4, 8)
        operators.replace(model, linear=True, verbose=False)
        pickled = pickle.dumps(model)
        self.assertEqual(pickled.count(b"cubind"), 0)
        twin = copy.deepcopy(model)
        self.assertEqual([type(one) for one in twin], [type(one) for one in model])
        self.assertEqual(operators.replace(twin, linear=True, dry_run=True, verbose=False).replaced, [])
        for other in (twin, pickle.loads(pickled)):
            torch.testing.assert_close(other(x), model(x))

    def test_a_parametrized_module_is_copied_and_refuses_to_be_pickled_as_without_cubind(self):
        model, x = self.model(), torch.randn(4, 8)
        operators.replace(model, linear=True, verbose=False)
        torch.nn.utils.parametrizations.weight_norm(model[0])
        torch.testing.assert_close(copy.deepcopy(model)(x), model(x))
        with self.assertRaisesRegex(RuntimeError, "only supported through state_dict"):
            pickle.dumps(model)

    def test_a_line_stands_for_all_layers_with_the_same_module(self):
        layers = [torch.nn.ModuleDict({"norm1": torch.nn.RMSNorm(8)}) for _ in range(3)]
        layers.append(torch.nn.ModuleDict({"norm1": torch.nn.RMSNorm((4, 8))}))
        model = torch.nn.ModuleDict({"layers": torch.nn.ModuleList(layers), "last": torch.nn.RMSNorm(8)})
        done = operators.replace(model, verbose=False)
        lines = [
            "layers.*.norm1: RMSNorm replaced (3 modules)",
            "last: RMSNorm replaced",
            "layers.3.norm1: RMSNorm kept: it normalizes several dims",
        ]
        self.assertEqual(str(done).splitlines(), lines)
        self.assertEqual([name for name, _ in done.replaced][:2], ["layers.0.norm1", "layers.1.norm1"])

    def test_linear_modules_are_replaced_on_request(self):
        model, x = self.model(), torch.randn(4, 8)
        before = model(x)
        with operators_replaced(model, linear=True):
            self.assertIsInstance(model[0], operators.Linear)
            torch.testing.assert_close(model(x), before)
        self.assertIs(type(model[0]), torch.nn.Linear)

    def test_a_model_trains_as_with_torch(self):
        losses = []
        for replaced in (False, True):
            model = self.model()
            if replaced:
                operators.replace(model, linear=True, verbose=False)
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


class Names(unittest.TestCase):
    def test_every_public_name_has_a_docstring_that_names_its_parameters(self):
        found = [
            text for name in operators.__all__ for text in running.unexplained(name, getattr(operators, name))
        ]
        self.assertEqual(found, [])

    def test_every_operator_says_shapes_types_and_what_it_raises(self):
        functions = (
            operators.rms_norm,
            operators.layer_norm,
            operators.softmax,
            operators.linear,
            operators.scaled_dot_product_attention,
            operators.add_rms_norm,
            operators.layer_norm_linear,
            operators.weighted_sum,
        )
        for function in functions:
            text = inspect.getdoc(function)
            self.assertRegex(text, r"(input|query): \[.*\]; bf16", function.__name__)
            self.assertRegex(text, r"Raises|as rms_norm\(\) says", function.__name__)


class Missing(unittest.TestCase):
    """A missing kernel."""

    def setUp(self):
        self.addCleanup(operators.use, None)
        self.addCleanup(operators.strict, False)
        operators.strict(False)
        running.forget_warnings()
        operators.use(cubind_client_of_nobody())

    def launch(self):
        x, w = torch.randn(4, 8).bfloat16(), torch.ones(8, dtype=torch.bfloat16)
        y = on_gpu("rms_norm", x, w, 1e-6)
        self.assertTrue(torch.equal(y, torch.nn.functional.rms_norm(x, (8,), w, 1e-6)))

    def test_it_is_warned_of_once_and_asked_for_again_after_a_step(self):
        with warnings.catch_warnings(record=True, action="always") as caught:
            self.launch()
            self.launch()
            operators.step()
            self.launch()
            self.assertFalse(operators.wait(timeout=running.PATIENCE))
        self.assertEqual(len(caught), 1)
        for told in ("torch's own operators are used", "no.sock", "CUBIND=0"):
            self.assertIn(told, str(caught[0].message))
        self.assertRegex(
            operators.report(), r"rmsnorm_forward: asked \d, launched 0, torch's own 3 \(unix:.*no.sock"
        )

    def test_strict_raises(self):
        operators.strict()
        with self.assertRaises(cubind.CubindError):
            self.launch()


@contextlib.contextmanager
def operators_replaced(model, **options):
    done = operators.replace(model, verbose=False, **options)
    yield
    done.undo()


def cubind_client_of_nobody():
    return cubind.Client(f"unix://{running.SOURCE}/no.sock", timeout=2)
