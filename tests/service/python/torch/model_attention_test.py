"""cubind.torch.replace() of the attention of `transformers`, with small models on the CPU. Needs torch and
transformers."""

import contextlib
import pickle
import unittest

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
import cubind.torch as operators
import torch
from torch_launches import attention_by_formula, left_to_torch
from transformers_found import needs_transformers, transformers

LAYERS = 2


def made(kind, head_dim=16, **others):
    """A small model of the kind, as `transformers` names it."""
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
        sizes.update(num_key_value_heads=1, head_dim=head_dim)
    config = getattr(transformers, f"{kind}Config")(vocab_size=64, **{**sizes, **others})
    return getattr(transformers, f"{kind}Model")(config).eval()


@contextlib.contextmanager
def counted(model):
    """Replaced meanwhile."""
    done = operators.replace(model, verbose=False)
    with attention_by_formula() as attend:
        yield attend
    done.undo()


@needs_transformers
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

    # Of the tokens that are real: of the others transformers computes something, the kernels nothing.
    def check_real(self, model, real, flags, **given):
        tokens = torch.arange(real.numel()).view(real.shape)

        def run():
            states = model(tokens, **given)[0][real]
            return states, torch.autograd.grad(states.square().sum(), model.get_input_embeddings().weight)

        expected, theirs = run()
        with counted(model) as attend:
            found, gradients = run()
        self.assertEqual([call.args for call in attend.call_args_list], [flags] * LAYERS)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(gradients, theirs, rtol=1e-3, atol=1e-3)

    def test_padding_on_either_side_is_of_sequences_with_gaps(self):
        right, left = torch.ones(3, 9, dtype=torch.int64), torch.ones(3, 9, dtype=torch.int64)
        right[1, 5:] = left[0, :4] = left[1, :8] = 0
        own = (True, 0, 0, 0, True, False, False)
        for mask in (right, left):
            for kind in ("Llama", "Mistral", "Qwen2", "Qwen3"):
                with self.subTest(f"{kind} {mask.tolist()}"):
                    self.check_real(made(kind), mask.bool(), own, attention_mask=mask)
            windows = made("Mistral", sliding_window=3)
            self.check_real(windows, mask.bool(), (True, 3, *own[2:]), attention_mask=mask)
            both = (False, 0, 0, 0, True, True, False)
            self.check_real(made("Bert"), torch.ones(3, 9).bool(), both, attention_mask=mask)

    def test_a_mask_of_ones_is_no_mask(self):
        for kind in ("Bert", "Llama"):
            with self.subTest(kind):
                self.check(made(kind), LAYERS, attention_mask=torch.ones(2, 7, dtype=torch.int64))

    def test_eager_attention_has_the_soft_cap(self):
        mask = torch.ones(2, 9, dtype=torch.int64)
        mask[1, :3] = 0
        flags = (True, 0, 0, 3, True, False, False)
        options = {"attn_logit_softcapping": 3.0, "query_pre_attn_scalar": 16, "sliding_window": 99}
        model = made("Gemma2", attn_implementation="eager", **options)
        self.check_real(model, mask.bool(), flags, attention_mask=mask)
        self.check(model, LAYERS)
        with contextlib.suppress(ValueError):  # transformers 5.24 refuses what leaves the soft-cap out
            self.check(made("Gemma2", attn_implementation="sdpa", **options), 0)

    def test_position_ids_that_begin_again_pack_sequences(self):
        model = made("Mistral", sliding_window=4, use_cache=False)
        flags = (True, 4, 0, 0, False, False, True)
        one = torch.tensor([[0, 1, 2, 0, 1, 2, 3, 4, 0, 0, 1, 2]])
        two = torch.tensor([[0, 1, 2, 0, 1, 2], [0, 0, 1, 2, 3, 0]])
        for positions in (one, two):
            with self.subTest(positions.tolist()):
                real = torch.ones_like(positions).bool()
                self.check_real(model, real, flags, position_ids=positions)

    def test_a_window_without_padding_is_of_dense_heads(self):
        tokens = torch.ones(2, 7, dtype=torch.bool)
        self.check_real(made("Mistral", sliding_window=3), tokens, (True, 3, 0, 0))
        self.check_real(made("Mistral", sliding_window=32), tokens, (True, 0, 0, 0))

    def test_what_no_kernel_has_is_transformers_own_and_named(self):
        gap = torch.ones(2, 7, dtype=torch.int64)
        gap[1, 3] = 0
        own = torch.ones(2, 1, 7, 7, dtype=torch.bool).tril()
        cases = (
            (made("Llama"), {"attention_mask": gap}, "a row of the mask has a gap"),
            (made("Llama"), {"attention_mask": own}, "it is not known what the mask was built from"),
            (made("GPT2", attn_pdrop=0.5).train(), {}, "dropout"),
        )
        for model, given, why in cases:
            with self.subTest(why):
                before = left_to_torch(why)
                with counted(model) as attend:
                    model(torch.arange(14).view(2, 7), **given)
                self.assertEqual(attend.call_count, 0)
                self.assertEqual(left_to_torch(why) - before, LAYERS)

    def test_a_position_bias_is_transformers_own(self):
        sizes = {"d_model": 32, "d_kv": 16, "d_ff": 48, "num_heads": 2, "num_layers": 1, "dropout_rate": 0.0}
        model = transformers.T5Model(transformers.T5Config(vocab_size=64, **sizes)).eval()
        tokens = torch.arange(14).view(2, 7)
        given = {"input_ids": tokens, "decoder_input_ids": tokens}
        expected, before = model(**given).last_hidden_state, left_to_torch("position_bias")
        with counted(model):
            torch.testing.assert_close(model(**given).last_hidden_state, expected)
        self.assertEqual(left_to_torch("position_bias") - before, 3)

    # No layer is cubind's, for the reason, and the results are those of transformers.
    def check_refused(self, model, mask, why):
        tokens, before = torch.arange(14).view(2, 7), left_to_torch(why)
        with counted(model) as attend:
            found = model(tokens, attention_mask=mask)[0]
        self.assertEqual((attend.call_count, left_to_torch(why) - before), (0, LAYERS))
        torch.testing.assert_close(found, model(tokens, attention_mask=mask)[0])

    def test_a_mask_that_was_changed_or_is_of_another_batch_is_not_believed(self):
        model = made("Llama")
        operators.replace(model, verbose=False)  # whose masks are known
        padded = torch.ones(2, 7, dtype=torch.int64)
        padded[1, 5:] = 0
        build = transformers.masking_utils.create_causal_mask
        mask, one = (
            build(model.config, torch.ones(len(each), 7, 32), each, None) for each in (padded, padded[1:])
        )
        with counted(model) as attend:
            model(torch.arange(14).view(2, 7), attention_mask=mask)
        self.assertEqual(attend.call_count, LAYERS)
        self.check_refused(model, one, "the mask is of other sizes")
        mask.fill_(True)
        self.check_refused(model, mask, "the mask was changed")

    def test_a_trace_takes_other_masks_too(self):
        model = made("Llama", use_cache=False).requires_grad_(False)
        tokens = torch.arange(14).view(2, 7)
        padded, gap = torch.ones(2, 7, dtype=torch.int64), torch.ones(2, 7, dtype=torch.int64)
        padded[1, :3] = 0
        gap[1, 3] = 0
        expected = model(tokens, attention_mask=gap)[0]

        def states(tokens, mask):
            return model(tokens, attention_mask=mask)[0]

        with counted(model) as attend, torch.no_grad():
            traced = torch.jit.trace(states, (tokens, padded), check_trace=False)
        torch.testing.assert_close(traced(tokens, gap), expected, rtol=1e-4, atol=1e-4)
        self.assertEqual(attend.call_count, 0)

    def test_generation_with_either_cache_gives_the_same_tokens(self):
        mask = torch.ones(3, 7, dtype=torch.int64)
        mask[1, :3] = mask[2, :6] = 0
        for kind, options in (("Llama", {}), ("Mistral", {"sliding_window": 5})):
            for cache, padded in (("dynamic", mask), ("static", mask), ("static", None)):
                model = getattr(transformers, f"{kind}ForCausalLM")(made(kind, **options).config).eval()
                given = {
                    "input_ids": torch.arange(21).view(3, 7),
                    "attention_mask": padded,
                    "max_new_tokens": 6,
                    "do_sample": False,
                    "cache_implementation": cache,
                    "pad_token_id": 0,
                }
                with self.subTest(f"{kind} {options} {cache} padded: {padded is not None}"):
                    expected = model.generate(**given)
                    with counted(model) as attend:
                        self.assertEqual(model.generate(**given).tolist(), expected.tolist())
                    self.assertEqual(attend.call_count, 6 * LAYERS)

    def test_another_implementation_is_left_alone_and_named(self):
        # Llama: its rotary embedding.
        for kind, name, replaced in (("Bert", "eager", 0), ("Llama", "flex_attention", LAYERS)):
            with self.subTest(kind):
                model = made(kind, attn_implementation=name)
                done = operators.replace(model, verbose=False, dry_run=True)
                self.assertEqual([why for *_, why in done.kept], [f"its attention is {name}"] * LAYERS)
                self.assertEqual(sum("Attention" in cls for _, cls in done.replaced), replaced)
        self.check(made("Bert", attn_implementation="eager"), 0)

    def test_a_pickled_layer_comes_back_as_it_was(self):
        model = made("Bert")
        before = type(model.encoder.layer[0].attention.self)
        operators.replace(model, verbose=False)
        layer = model.encoder.layer[0].attention.self
        self.assertIsNot(type(layer), before)
        self.assertIs(type(pickle.loads(pickle.dumps(layer))), before)
