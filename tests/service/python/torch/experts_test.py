"""cubind.torch.replace() of the experts of `transformers`: small models on the CPU, and what they launch.
Needs torch and transformers."""

import contextlib
import copy
import pickle
import unittest
from unittest import mock

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
import cubind.torch as operators
import torch
import torch_launches
from cubind.torch import _choices, _experts
from torch_launches import as_if_on_gpu
from transformers_found import needs_transformers, transformers

LAYERS = 2
TOKENS = torch.arange(14).view(2, 7)
SIZES = {
    **{"num_hidden_layers": LAYERS, "vocab_size": 64, "hidden_size": 128, "num_attention_heads": 2},
    **{"num_key_value_heads": 1, "head_dim": 64, "intermediate_size": 48, "moe_intermediate_size": 48},
    **{"num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2, "use_cache": False},
}


def made(kind="Mixtral", **others):
    torch.manual_seed(0)
    model = getattr(transformers, f"{kind}ForCausalLM")
    config = model.config_class(**SIZES)
    return model._from_config(config, **{"experts_implementation": "grouped_mm", **others}).train()


def experts_of(model):
    return next(module for module in model.modules() if type(module).__name__.endswith("Experts"))


@contextlib.contextmanager
def by_formula():
    """Meanwhile the kernel's products are those of torch's functions. A mock that counts them."""

    def product(a, b, offs):
        turned = not b.is_contiguous()
        return torch.ops.cubind.grouped_mm(a, b.mT if turned else b, offs, turned)

    with mock.patch.object(_experts, "by_kernel", side_effect=product) as counted:
        yield counted


def loss_and_gradients(model):
    loss = model(TOKENS, labels=TOKENS).loss
    return loss, torch.autograd.grad(loss, list(model.parameters()))


@needs_transformers
class Experts(unittest.TestCase):
    def test_models_compute_the_same_with_gradients(self):
        # GptOss stores its matrices the other way round, and adds a bias.
        for kind in ("Mixtral", "Qwen3Moe", "GptOss"):
            with self.subTest(kind), by_formula() as counted:
                model = made(kind)
                expected = loss_and_gradients(model)
                done = operators.replace(model, verbose=False)
                self.assertEqual(sum(name.endswith(".experts") for name, _ in done.replaced), LAYERS)
                torch.testing.assert_close(loss_and_gradients(model), expected, rtol=1e-3, atol=1e-5)
                self.assertEqual(counted.call_count, 2 * LAYERS)
                done.undo()
                loss_and_gradients(model)
                self.assertEqual(counted.call_count, 2 * LAYERS)

    def test_another_implementation_stays_and_is_named(self):
        model = made(experts_implementation="eager")
        done = operators.replace(model, verbose=False)
        self.assertIn(("model.layers.0.mlp.experts", "MixtralExperts", "its experts are eager"), done.kept)
        done.undo()
        model.set_experts_implementation("grouped_mm")
        operators.replace(model, verbose=False)
        expected = model(TOKENS).logits
        model.set_experts_implementation("batched_mm")  # as generate() does while it decodes
        with by_formula() as counted:
            torch.testing.assert_close(model(TOKENS).logits, expected)
        self.assertEqual(counted.call_count, 0)

    def test_a_copy_is_replaced_and_a_pickled_model_is_not(self):
        model = made()
        operators.replace(model, verbose=False)
        with by_formula() as counted:
            copy.deepcopy(model)(TOKENS)
            self.assertEqual(counted.call_count, 2 * LAYERS)
            self.assertIs(type(pickle.loads(pickle.dumps(experts_of(model)))).__mro__[1], torch.nn.Module)
            pickle.loads(pickle.dumps(model))(TOKENS)
            self.assertEqual(counted.call_count, 2 * LAYERS)

    def test_products_are_operators_in_graphs_where_they_are_chosen(self):
        for kinds, products in (((), 0), (("experts",), 2 * LAYERS)):
            with self.subTest(kinds):
                model, found = made().bfloat16(), []
                expected = loss_and_gradients(model)
                operators.replace(model, verbose=False)
                _choices.choose(model, kinds)

                def backend(graph, _, found=found):
                    found += [node for node in graph.graph.nodes if "cubind.grouped_mm" in str(node.target)]
                    return graph.forward

                torch._dynamo.reset()
                compiled = torch.compile(model, backend=backend, fullgraph=True)
                with as_if_on_gpu():
                    loss = compiled(input_ids=TOKENS, labels=TOKENS).loss
                self.assertEqual(len(found), products)
                torch.testing.assert_close(loss, expected[0], rtol=2e-2, atol=2e-2)
                loss.backward()
                self.assertTrue(all(one.grad is not None for one in experts_of(model).parameters()))


@needs_transformers
class Launched(torch_launches.OnFakeDriver):
    def test_experts_launch_the_kernel_in_both_passes_but_under_autocast(self):
        model = made().bfloat16()
        operators.replace(model, verbose=False)
        experts = experts_of(model)
        tokens = torch.ones(64, 128, dtype=torch.bfloat16, requires_grad=True)
        index = torch.arange(128).view(64, 2) % 4
        weights = torch.ones(64, 2, dtype=torch.bfloat16)
        with as_if_on_gpu():
            y, launches = self.launches_of(lambda: experts(tokens, index, weights), 3)
            self.assertEqual(len(launches), 2)
            _, launches = self.launches_of(lambda: y.sum().backward(), 3)
            self.assertEqual(len(launches), 2)  # of the rows; those of the matrices are torch's
            self.assertIn("grouped_mm: gradients of matrices: torch's own", operators.report())
            self.assertEqual(experts.down_proj.grad.shape, experts.down_proj.shape)
            torch.set_autocast_enabled("cuda", True)
            self.addCleanup(torch.set_autocast_enabled, "cuda", False)
            _, launches = self.launches_of(lambda: experts(tokens, index, weights), 3)
            self.assertEqual(launches, [])
