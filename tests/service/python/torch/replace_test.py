"""cubind.torch.replace() of modules of `transformers`: their own where it is installed, and small ones of the
same names. On the CPU. Needs torch."""

import copy
import io
import pickle
import sys
import types
import unittest

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
import cubind.torch as operators
import running
import torch
from torch.nn import functional
from transformers_found import needs_transformers, transformers


def tiny_llama():
    sizes = {"vocab_size": 64, "num_hidden_layers": 2, "hidden_size": 32, "intermediate_size": 48}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, **heads, use_cache=False)).train()


MODULE = "transformers.models.made_up"


class SiLUActivation(torch.nn.Module):
    def forward(self, x):
        return functional.silu(x)


class NewGELUActivation(torch.nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)))


class LlamaMLP(torch.nn.Module):
    def __init__(self, act_fn):
        super().__init__()
        self.gate_proj, self.up_proj = (torch.nn.Linear(8, 16) for _ in range(2))
        self.down_proj, self.act_fn = torch.nn.Linear(16, 8), act_fn

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class LlamaRMSNorm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.variance_epsilon = torch.nn.Parameter(torch.randn(8)), 1e-6

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.variance_epsilon)


MADE_UP = (SiLUActivation, NewGELUActivation, LlamaMLP, LlamaRMSNorm)


def setUpModule():
    module = types.ModuleType(MODULE)
    for cls in MADE_UP:
        cls.__module__ = MODULE
        setattr(module, cls.__name__, cls)
    sys.modules[MODULE] = module


def gradients(model, x):
    x = x.clone().requires_grad_()
    y = model(x)
    return y, torch.autograd.grad(y.square().sum(), [x, *model.parameters()])


class Replaced(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def check_same(self, model, x, names):
        expected = gradients(model, x)
        done = operators.replace(model, verbose=False)
        self.assertEqual([cls for _, cls in done.replaced], names)
        torch.testing.assert_close(gradients(model, x), expected)
        done.undo()

    def test_modules_compute_the_same_with_gradients(self):
        x = torch.randn(3, 5, 8)
        self.check_same(LlamaMLP(SiLUActivation()), x, ["LlamaMLP"])
        self.check_same(LlamaMLP(torch.nn.SiLU()), x, ["LlamaMLP"])
        # What remains of the gate is not called.
        self.check_same(LlamaMLP(NewGELUActivation()), x, ["LlamaMLP", "NewGELUActivation"])
        self.check_same(torch.nn.Sequential(LlamaRMSNorm(), NewGELUActivation()), x, [
            "LlamaRMSNorm", "NewGELUActivation"])  # fmt: skip

    def test_another_gate_keeps_the_layer_with_its_name(self):
        done = operators.replace(LlamaMLP(torch.nn.Tanh()), verbose=False)
        self.assertEqual((done.replaced, done.kept), ([], [("", "LlamaMLP", "its gate is Tanh")]))

    def test_a_class_of_that_name_elsewhere_is_left_alone(self):
        class NewGELUActivation(torch.nn.Module):
            pass

        self.assertEqual(operators.replace(NewGELUActivation(), verbose=False).replaced, [])

    def test_a_pickled_module_comes_back_as_it_was(self):
        model = torch.nn.Sequential(LlamaRMSNorm(), LlamaMLP(SiLUActivation()))
        operators.replace(model, verbose=False)
        stream = io.BytesIO(pickle.dumps(model))
        loaded, x = pickle.load(stream), torch.randn(2, 8)
        self.assertEqual([type(module) for module in loaded], [LlamaRMSNorm, LlamaMLP])
        torch.testing.assert_close(loaded(x), model(x))

    def test_modules_of_a_class_stay_of_one_class(self):
        model = torch.nn.Sequential(LlamaRMSNorm(), LlamaRMSNorm())
        operators.replace(model, verbose=False)
        self.assertIs(type(model[0]), type(model[1]))
        self.assertIsNot(type(model[0]), LlamaRMSNorm)

    def test_what_is_replaced_is_left_alone_with_its_name(self):
        for model in (LlamaMLP(SiLUActivation()), LlamaRMSNorm(), torch.nn.LayerNorm(8)):
            original = type(model)
            first, second = (operators.replace(model, verbose=False) for _ in range(2))
            ((_, name, why),) = second.kept
            self.assertEqual((second.replaced, name), ([], original.__name__))
            self.assertIn("replaced already", why)
            self.assertIs(type(pickle.loads(pickle.dumps(model))), original)
            first.undo()
            self.assertIs(type(model), original)

    def test_a_norm_with_wider_weights_keeps_its_type(self):
        model, x = LlamaRMSNorm(), torch.randn(2, 8, dtype=torch.bfloat16)
        expected = model(x)
        operators.replace(model, verbose=False)
        self.assertEqual(model(x).dtype, torch.float32)
        torch.testing.assert_close(model(x), expected, rtol=1e-2, atol=1e-2)

    def test_a_copy_is_replaced_too(self):
        model = LlamaMLP(SiLUActivation())
        operators.replace(model, verbose=False)
        twin, x = copy.deepcopy(model), torch.randn(2, 8)
        self.assertIs(type(twin), type(model))
        torch.testing.assert_close(twin(x), model(x))
        self.assertIsNot(twin.down_proj.weight, model.down_proj.weight)

    @needs_transformers
    def test_models_of_transformers_compute_the_same(self):
        sizes = {"vocab_size": 64, "num_hidden_layers": 2, "hidden_size": 32, "intermediate_size": 48}
        heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16}
        gpt2 = transformers.GPT2Config(vocab_size=64, n_layer=2, n_embd=32, n_head=2)
        models = {
            transformers.LlamaForCausalLM: (transformers.LlamaConfig(**sizes, **heads), 2 * 4 + 2),
            transformers.MistralForCausalLM: (transformers.MistralConfig(**sizes, **heads), 2 * 4 + 2),
            transformers.Qwen3ForCausalLM: (transformers.Qwen3Config(**sizes, **heads), 2 * 6 + 2),
            transformers.GPT2LMHeadModel: (gpt2, 2 * 4 + 2),
        }
        tokens = torch.randint(64, (2, 7))
        for cls, (config, replaced) in models.items():
            with self.subTest(cls.__name__):
                model = cls(config).eval()
                expected = model(tokens, labels=tokens)
                done = operators.replace(model, verbose=False)
                self.assertEqual(len(done.replaced), replaced, str(done))
                found = model(tokens, labels=tokens)
                torch.testing.assert_close((found.loss, found.logits), (expected.loss, expected.logits))

    @needs_transformers
    def test_rotary_embedding_and_loss_of_one_model_are_replaced(self):
        model, other = (tiny_llama() for _ in range(2))
        tokens = torch.randint(64, (2, 7))
        labels = tokens.masked_fill(torch.rand(2, 7) < 0.3, -100)
        expected = model(tokens, labels=labels, num_items_in_batch=5).loss
        done = operators.replace(model, verbose=False)
        with running.calls() as calls:
            torch.testing.assert_close(model(tokens, labels=labels, num_items_in_batch=5).loss, expected)
            self.assertEqual((calls["rotary"], calls["cross_entropy"]), (2, 1))
            other(tokens, labels=labels)
            done.undo()
            model(tokens, labels=labels)
            self.assertEqual((calls["rotary"], calls["cross_entropy"]), (2, 1))

    @needs_transformers
    def test_a_chunked_loss_has_no_logits_and_the_same_gradients(self):
        model, tokens = tiny_llama(), torch.randint(64, (2, 7))
        labels = tokens.masked_fill(torch.rand(2, 7) < 0.3, -100)
        for given in ({}, {"num_items_in_batch": torch.tensor(5)}):
            expected = model(tokens, labels=labels, **given).loss
            theirs = torch.autograd.grad(expected, list(model.parameters()))
            done = operators.replace(model, chunked_loss=True, verbose=False)
            found = model(input_ids=tokens, labels=labels, **given)
            self.assertIsNone(found.logits)
            torch.testing.assert_close(found.loss, expected)
            torch.testing.assert_close(torch.autograd.grad(found.loss, list(model.parameters())), theirs)
            self.assertEqual(model(tokens).logits.shape, (2, 7, 64))
            self.assertEqual(model(tokens, labels=labels, logits_to_keep=0).logits.shape, (2, 7, 64))
            self.assertIsNotNone(model.eval()(tokens, labels=labels).logits)
            model.train()
            done.undo()

    @needs_transformers
    def test_a_loss_that_the_user_has_set_stays(self):
        model = tiny_llama()
        model.loss_function = lambda **_: 3
        operators.replace(model, verbose=False)
        tokens = torch.randint(64, (2, 7))
        self.assertEqual(model(tokens, labels=tokens).loss, 3)
        other = tiny_llama()
        operators.replace(other, verbose=False)
        other.loss_function = model.loss_function
        self.assertEqual(other(tokens, labels=tokens).loss, 3)

    @needs_transformers
    def test_a_replaced_model_pickles_compiles_and_differentiates(self):
        model, tokens = tiny_llama(), torch.randint(64, (2, 7))
        expected = model(tokens, labels=tokens).loss
        theirs = torch.autograd.grad(expected, list(model.parameters()))
        operators.replace(model, verbose=False)
        self.assertIs(type(pickle.loads(pickle.dumps(model))), transformers.LlamaForCausalLM)
        loss = torch.compile(model, backend="aot_eager", fullgraph=True)(tokens, labels=tokens).loss
        torch.testing.assert_close(loss, expected)
        torch.testing.assert_close(torch.autograd.grad(loss, list(model.parameters())), theirs)
