"""cubind.torch.replace() of the attention of `transformers`, with small models on the CPU. Needs torch and
transformers."""

import contextlib
import pickle
import unittest

import torch_found  # first: it looks for a Python with torch

# isort: split
import cubind.torch as operators
import torch
from torch_launches import as_if_on_gpu, attention_by_formula

try:
    import transformers
except ImportError:
    transformers = None

LAYERS = 2


def made(kind, head_dim=16, **others):
    """A small model of "Llama", "Mistral", "Qwen2", "GPT2" or "Bert"."""
    torch.manual_seed(0)
    size = 2 * head_dim
    if kind == "GPT2":
        dropped = dict.fromkeys(("attn_pdrop", "resid_pdrop", "embd_pdrop"), 0.0)
        sizes = {"n_layer": LAYERS, "n_embd": size, "n_head": 2, **dropped}
    else:
        sizes = {"num_hidden_layers": LAYERS, "hidden_size": size, "num_attention_heads": 2}
        sizes["intermediate_size"] = 48
    if kind == "Bert":
        sizes.update(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    elif kind != "GPT2":
        sizes["num_key_value_heads"] = 1
    config = getattr(transformers, f"{kind}Config")(vocab_size=64, **{**sizes, **others})
    return getattr(transformers, f"{kind}Model")(config).eval()


@contextlib.contextmanager
def counted(model):
    """Replaced meanwhile."""
    done = operators.replace(model, verbose=False)
    with attention_by_formula() as attend:
        yield attend
    done.undo()


@unittest.skipIf(transformers is None, "needs transformers")
class Models(unittest.TestCase):
    def check(self, model, calls, **given):
        tokens = torch.arange(14).view(2, 7)
        expected = model(tokens, **given)[0]
        theirs = torch.autograd.grad(expected.square().sum(), model.get_input_embeddings().weight)
        with counted(model) as attend:
            found = model(tokens, **given)[0]
            gradients = torch.autograd.grad(found.square().sum(), model.get_input_embeddings().weight)
        self.assertEqual(attend.call_count, calls)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(gradients, theirs, rtol=1e-3, atol=1e-3)
        model(tokens, **given)
        self.assertEqual(attend.call_count, calls)  # undone

    def test_models_call_cubinds_attention_in_every_layer(self):
        for kind in ("Llama", "Mistral", "Qwen2", "GPT2", "Bert"):
            with self.subTest(kind):
                self.check(made(kind), LAYERS)

    def test_a_padded_batch_is_transformers_own(self):
        mask = torch.ones(2, 7, dtype=torch.int64)
        padded = mask.clone()
        padded[1, 5:] = 0
        for kind in ("Bert", "Llama"):
            with self.subTest(kind):
                self.check(made(kind), LAYERS, attention_mask=mask)
                self.check(made(kind), 0, attention_mask=padded)

    def test_a_window_that_leaves_out_keys_is_transformers_own(self):
        self.check(made("Mistral", sliding_window=3), 0)
        self.check(made("Mistral", sliding_window=32), LAYERS)

    def test_dropout_is_transformers_own(self):
        model = made("GPT2", attn_pdrop=0.5).train()
        with counted(model) as attend:
            model(torch.arange(14).view(2, 7))
        self.assertEqual(attend.call_count, 0)

    def test_a_cache_gives_the_same_tokens(self):
        model = transformers.LlamaForCausalLM(made("Llama").config).eval()
        given = {"input_ids": torch.arange(7)[None], "max_new_tokens": 4, "do_sample": False}
        expected = model.generate(**given)
        with counted(model) as attend:
            self.assertEqual(model.generate(**given).tolist(), expected.tolist())
        self.assertGreaterEqual(attend.call_count, 2 * LAYERS)

    def test_another_implementation_is_left_alone_and_named(self):
        for kind, replaced in (("Bert", 0), ("Llama", LAYERS)):  # Llama: its rotary embedding
            with self.subTest(kind):
                model = made(kind, attn_implementation="eager")
                done = operators.replace(model, verbose=False, dry_run=True)
                self.assertEqual([why for *_, why in done.kept], ["its attention is eager"] * LAYERS)
                self.assertEqual(sum("Attention" in cls for _, cls in done.replaced), replaced)
                self.check(model, 0)

    def test_a_pickled_layer_comes_back_as_it_was(self):
        model = made("Bert")
        before = type(model.encoder.layer[0].attention.self)
        operators.replace(model, verbose=False)
        layer = model.encoder.layer[0].attention.self
        self.assertIsNot(type(layer), before)
        self.assertIs(type(pickle.loads(pickle.dumps(layer))), before)

    def test_a_compiled_graph_has_the_layers_of_transformers(self):
        graphs = []

        def keep(graph, _):
            graphs.append(graph.code)
            return graph.forward

        for kind in ("Bert", "Llama"):
            with self.subTest(kind), as_if_on_gpu():
                graphs.clear()
                torch._dynamo.reset()
                model = made(kind, head_dim=64).bfloat16()
                tokens = torch.arange(14).view(2, 7)
                expected = torch.compile(model, backend=keep)(tokens)[0]
                theirs = list(graphs)
                operators.replace(model, verbose=False)
                graphs.clear()
                torch._dynamo.reset()
                torch.testing.assert_close(torch.compile(model, backend=keep)(tokens)[0], expected)
                self.assertEqual(graphs, theirs)


if __name__ == "__main__":
    torch_found.main()
