"""What is cubind's in compiled graphs of models of `transformers`: small ones, traced on the CPU. Needs torch
and transformers."""

import json
import pathlib
import pickle
import tempfile
import unittest
import warnings
from unittest import mock

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
import cubind
import cubind.torch as operators
import running
import torch
from cubind.torch import (
    _call,
    _choices,
    _compiled,
    _compiled_kept,
    _compiled_step,
    _embedding,
    _graph_attention,
)
from torch_launches import as_if_on_gpu
from transformers_found import transformers

LAYERS = 1
TOKENS = torch.arange(14).view(2, 7)
RECORDED = pathlib.Path(__file__).parents[3] / "golden" / "compiled_llama.json"  # on an H200
OF_RULE = {"attention", "loss", "embedding", "rotary"}
SIZES = {"num_hidden_layers": LAYERS, "hidden_size": 128, "num_attention_heads": 2, "intermediate_size": 48}
DECODER = {**SIZES, "vocab_size": 64, "num_key_value_heads": 1, "use_cache": False}
MODELS = {
    "LlamaForCausalLM": DECODER,
    "MistralForCausalLM": DECODER,
    "Qwen3ForCausalLM": {**DECODER, "head_dim": 64},
    "Phi3ForCausalLM": {**DECODER, "pad_token_id": 0, "eos_token_id": 1},
    "BertForMaskedLM": {
        **SIZES,
        "vocab_size": 64,
        "hidden_dropout_prob": 0,
        "attention_probs_dropout_prob": 0,
    },
    "ViTForImageClassification": {**SIZES, "image_size": 32, "hidden_dropout_prob": 0},
    "GPT2LMHeadModel": {
        **{"n_layer": LAYERS, "n_embd": 128, "n_head": 2, "vocab_size": 64, "use_cache": False},
        **dict.fromkeys(("attn_pdrop", "resid_pdrop", "embd_pdrop"), 0.0),
    },
}


def made(name="LlamaForCausalLM", **others):
    torch.manual_seed(0)
    cls = getattr(transformers, name)
    return cls(cls.config_class(**{**MODELS.get(name, DECODER), **others})).bfloat16().train()


def batch_for(model):
    if type(model).__name__.startswith("ViT"):
        return {"pixel_values": torch.ones(2, 3, 32, 32).bfloat16(), "labels": torch.tensor([0, 1])}
    return {"input_ids": TOKENS, "labels": TOKENS}


def replaced(model, kinds=()):
    done = operators.replace(model, verbose=False)
    _choices.choose(model, kinds)
    return done


class Graphs:
    """A backend that keeps the graphs."""

    def __init__(self):
        self.graphs = []

    def __call__(self, graph, _):
        self.graphs.append(graph)
        return graph.forward

    def count(self, name):
        """Calls of cubind::NAME."""
        own = (node for graph in self.graphs for node in graph.graph.nodes)
        return sum(
            getattr(node.target, "_qualname", str(node.target)) == f"cubind.{name}.default" for node in own
        )

    def attention(self):
        """Of each call of torch's attention: whether it is causal, and whether it has a mask."""
        nodes = (node for graph in self.graphs for node in graph.graph.nodes)
        return [
            (node.kwargs["is_causal"], node.kwargs["attn_mask"] is not None)
            for node in nodes
            if node.target is torch.nn.functional.scaled_dot_product_attention
        ]


def step(model, **options):
    """The loss of the model, compiled as one graph, the gradients, and the graphs."""
    torch._dynamo.reset()
    graphs = Graphs()
    compiled = torch.compile(model, **{"backend": graphs, "fullgraph": True, **options})
    loss = compiled(**batch_for(model)).loss
    parameters = [one for one in model.parameters() if one.requires_grad]
    return loss, torch.autograd.grad(loss, parameters, allow_unused=True), graphs


def losses(model):
    """Of twenty steps."""
    optimizer, found = torch.optim.AdamW(model.parameters(), lr=1e-4), []
    for number in range(20):
        batch = (TOKENS * (2 * number + 1)) % 64
        loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append(loss.item())
    return torch.tensor(found)


class OfModels(unittest.TestCase):
    def setUp(self):
        if transformers is None:
            self.skipTest("needs transformers")
        self.enterContext(as_if_on_gpu())
        self.enterContext(mock.patch.object(_embedding, "_LARGE", 64 * 128))
        self.enterContext(warnings.catch_warnings(action="ignore"))
        operators.use(Client())
        self.addCleanup(operators.use, None)


def assert_close(found, expected):
    torch.testing.assert_close(found, expected, rtol=3e-2, atol=3e-2)


class WithoutChoice(OfModels):
    def test_without_a_choice_all_is_torchs_and_nothing_is_masked(self):
        for name in MODELS:
            with self.subTest(name):
                model = made(name)
                expected = model(**batch_for(model)).loss
                replaced(model)
                loss, _, graphs = step(model)
                assert_close(loss, expected)
                self.assertEqual(len(graphs.graphs), 1)
                causal = not name.startswith(("Bert", "ViT"))
                self.assertEqual(graphs.attention(), [(causal, False)] * LAYERS)
                self.assertNotIn("cubind", graphs.graphs[0].code)

    def test_positions_and_padding_keep_their_masks(self):
        positions = torch.tensor([[0, 1, 2, 0, 1, 2, 3]] * 2)
        padding = torch.ones(2, 7, dtype=torch.int64)
        padding[1, 5:] = 0
        cases = (
            (made(), {"position_ids": positions}),
            (made(), {"attention_mask": padding}),
        )
        for model, given in cases:
            expected = model(TOKENS, **given).logits
            replaced(model, OF_RULE)
            torch._dynamo.reset()
            graphs = Graphs()
            assert_close(
                torch.compile(model, backend=graphs, fullgraph=True)(TOKENS, **given).logits, expected
            )
            self.assertEqual(graphs.attention(), [(False, True)] * LAYERS)


class Operators(OfModels):
    def test_chosen_kinds_are_operators_and_train_the_same(self):
        for name in MODELS:
            with self.subTest(name):
                model = made(name)
                expected = model(**batch_for(model)).loss
                parameters = [one for one in model.parameters() if one.requires_grad]
                theirs = torch.autograd.grad(expected, parameters, allow_unused=True)
                replaced(model, OF_RULE)
                loss, gradients, graphs = step(model)
                has_loss = not name.startswith(("Bert", "ViT"))
                self.assertEqual(
                    (graphs.attention(), graphs.count("attention"), graphs.count("cross_entropy")),
                    ([], LAYERS, int(has_loss)),
                )
                self.assertEqual(graphs.count("embedding") > 0, not name.startswith("ViT"))
                assert_close(loss, expected)
                for ours, other in zip(gradients, theirs, strict=True):
                    if other is not None:
                        assert_close(ours, other)

    def test_losses_are_as_near_to_torchs_as_the_compilers(self):
        for name in ("LlamaForCausalLM", "GPT2LMHeadModel"):
            with self.subTest(name):
                expected, models = losses(made(name)), [made(name), made(name)]
                replaced(models[1], OF_RULE)
                torch._dynamo.reset()
                compiled = (torch.compile(one, backend="aot_eager_decomp_partition") for one in models)
                theirs, ours = ((losses(one) / expected - 1).norm() for one in compiled)
                self.assertLess(ours, 2 * theirs)


class Windows(OfModels):
    def check(self, name, attention, **others):
        """Whether cubind's attention has no mask, in a graph whose layers the compiler has too."""
        model = made(name, attn_implementation=attention, sliding_window=3, **others)
        expected = model(**batch_for(model))
        theirs = torch.autograd.grad(expected.loss, list(model.parameters()))
        done = replaced(model, {"attention"})
        loss, gradients, graphs = step(model)
        self.assertEqual((graphs.count("attention"), graphs.attention()), (LAYERS, []))
        self.assertNotIn("softmax", graphs.graphs[0].code)
        assert_close(loss, expected.loss)
        assert_close(gradients, theirs)
        # Where it has no kernel for the heads it makes the mask itself.
        with mock.patch.object(_graph_attention, "has_kernel", lambda q: False):
            assert_close(step(model)[0], expected.loss)
        _choices.choose(model, ())
        assert_close(step(model)[0], expected.loss)
        done.undo()

    def test_attention_of_cubind_knows_windows_and_soft_caps(self):
        self.check("MistralForCausalLM", "sdpa")
        self.check("Gemma2ForCausalLM", "eager", attn_logit_softcapping=5.0, query_pre_attn_scalar=64)

    def test_a_layer_outside_of_the_graph_has_its_mask(self):
        for name, attention in (("MistralForCausalLM", "sdpa"), ("Gemma2ForCausalLM", "eager")):
            model = made(name, attn_implementation=attention, sliding_window=3)
            expected = model(**batch_for(model)).loss
            replaced(model, {"attention"})
            for layer in model.model.layers:
                layer.self_attn.register_forward_pre_hook(lambda *_: torch._dynamo.graph_break())
            loss, _, graphs = step(model, fullgraph=False)
            self.assertGreater(len(graphs.graphs), 1)
            assert_close(loss, expected)

    def test_layers_that_are_not_known_keep_their_masks(self):
        model = made("Phi3ForCausalLM", sliding_window=3)
        expected = model(**batch_for(model)).loss
        replaced(model, {"attention"})
        loss, _, graphs = step(model)
        self.assertEqual(graphs.attention(), [(False, True)] * LAYERS)
        assert_close(loss, expected)


class OneGraph(OfModels):
    def test_detached_logits_are_the_same_without_a_gradient(self):
        for name in ("LlamaForCausalLM", "GPT2LMHeadModel"):
            model = made(name)
            expected = model(**batch_for(model))
            done = operators.replace(model, detached_logits=True, verbose=False)
            self.assertTrue(model(**batch_for(model)).logits.requires_grad)
            torch._dynamo.reset()
            found = torch.compile(model, backend="aot_eager", fullgraph=True)(**batch_for(model))
            self.assertFalse(found.logits.requires_grad)
            assert_close((found.loss, found.logits), (expected.loss, expected.logits.detach()))
            assert_close(torch.autograd.grad(found.loss, list(model.parameters())),
                torch.autograd.grad(expected.loss, list(model.parameters())))  # fmt: skip
            done.undo()

    def test_every_kind_can_be_chosen(self):
        model = made()
        expected = model(**batch_for(model)).loss
        replaced(model, _compiled.KINDS)
        loss, _, graphs = step(model)
        assert_close(loss, expected)
        names = ("rotary", "gated_activation", "rms_norm", "embedding")
        self.assertEqual([graphs.count(name) for name in names], [LAYERS, LAYERS, 2 * LAYERS + 1, 1])

    def test_dynamic_sizes_checkpoints_and_autocast(self):
        for options in ({"dynamic": True}, {"backend": "aot_eager"}):
            model = made()
            expected = model(**batch_for(model)).loss
            replaced(model, OF_RULE)
            if "backend" in options:
                model.gradient_checkpointing_enable({"use_reentrant": False})
            assert_close(step(model, **options)[0], expected)
        model = made().float()
        with torch.autocast("cpu", torch.bfloat16):
            expected = model(**batch_for(model)).loss
            replaced(model, OF_RULE)
            assert_close(step(model)[0], expected)

    def test_an_exported_model_needs_no_cubind(self):
        model = made().eval()
        expected = model(TOKENS, return_dict=False)[0]
        replaced(model, OF_RULE)
        given = model, (TOKENS,), {"return_dict": False}
        for strict in (False, True):
            with mock.patch.object(
                _call,
                "are_plain",
                lambda tensors: {*map(type, tensors)} <= {torch.Tensor, torch.nn.Parameter},
            ):
                exported = torch.export.export(*given, strict=strict)
            self.assertNotIn("cubind", exported.graph_module.code)
            assert_close(exported.module()(TOKENS, return_dict=False)[0], expected)

    def test_what_is_chosen_leaves_with_the_replacement(self):
        model = made()
        done = replaced(model, OF_RULE)
        layer = model.model.layers[0].self_attn
        self.assertEqual(layer._in_graph, ("attention", "rotary"))
        self.assertNotIn("_in_graph", pickle.loads(pickle.dumps(layer)).__dict__)
        done.undo()
        self.assertFalse(any("_in_graph" in module.__dict__ for module in model.modules()))
        self.assertIs(type(model.model.embed_tokens), torch.nn.Embedding)


class Chosen(OfModels):
    """By tune(), whose kernels are taken for loaded."""

    def setUp(self):
        super().setUp()
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(mock.patch.dict("os.environ", XDG_CACHE_HOME=folder))
        self.loaded = self.enterContext(mock.patch.object(_compiled, "_is_loaded", return_value=True))
        running.forget_warnings()

    def tune(self, model, chunked_loss=False, **options):
        self.model = model  # report() says nothing of models that are gone
        operators.replace(model, chunked_loss=chunked_loss, verbose=False)
        operators.tune(model, progress=False, **options, **batch_for(model))
        return {kind for module in model.modules() for kind in getattr(module, "_in_graph", ())}

    def steps(self, time):
        """From now on steps take time(kinds) milliseconds. The kinds of each."""
        made = []

        def made_step(_, __, ___, kinds):
            made.append(kinds)
            return mock.Mock(kinds=kinds, seconds=1.0, time=lambda: time(kinds), __hash__=id)

        self.enterContext(mock.patch.object(_compiled_step, "_Step", side_effect=made_step))
        return made

    def test_attention_and_the_loss_are_cubinds_by_rule(self):
        self.assertEqual(self.tune(made(num_hidden_layers=2)), OF_RULE)
        text = operators.report()
        self.assertIn(
            "compiled model.layers.*.self_attn: attention is cubind's: its kernels are loaded (2 modules)",
            text,
        )
        self.assertIn("compiled model.norm: norm is the compiler's: the compiler fuses it", text)

    def test_a_kernel_that_is_missing_or_slower_leaves_its_kind_to_the_compiler(self):
        self.loaded.side_effect = lambda need: need.operator.name != "flash_attention_backward"
        self.assertEqual(self.tune(made()), OF_RULE - {"attention"})
        self.assertIn("flash_attention_backward is not loaded", operators.report())

    def test_what_the_compiler_fuses_with_a_neighbour_is_left_to_it(self):
        self.assertEqual(self.tune(made("Qwen3ForCausalLM")), OF_RULE - {"rotary"})
        self.assertIn("fuses it with the norms of queries and keys", operators.report())

    def test_classes_that_the_compiler_pads_are_left_to_it(self):
        self.assertNotIn("loss", self.tune(made(vocab_size=65)))

    def test_a_chunked_loss_stays_and_is_named(self):
        model = made()
        self.assertIn("loss", self.tune(model, chunked_loss=True))
        self.assertIn("loss is cubind's: chunked_loss was asked for", operators.report())

    def test_the_step_decides_and_is_measured_once(self):
        # Milliseconds: attention and activations pay, the loss does not.
        cost = {"attention": -3, "loss": 1, "rotary": -0.5, "activation": -1, "norm": 0, "embedding": 0}
        compiled = self.steps(lambda kinds: 20 + sum(cost[kind] for kind in kinds))
        for _ in range(2):
            model = made()
            wanted = {"attention", "embedding", "rotary", "activation"}
            self.assertEqual(self.tune(model, compiled=True), wanted)
        self.assertEqual(len(compiled), 6)
        self.assertIn(
            "activation is cubind's: the step takes 15.50 ms with cubind's, 16.50", operators.report()
        )

    def test_a_measurement_that_is_interrupted_leaves_the_rules_choice_and_keeps_nothing(self):
        model = made()

        def time(kinds):
            _choices.choose(model, kinds)  # as a step does
            if kinds != OF_RULE:
                raise KeyboardInterrupt
            return 20

        self.steps(time)
        self.assertRaises(KeyboardInterrupt, self.tune, model, compiled=True)
        self.assertEqual({kind for one in model.modules() for kind in getattr(one, "_in_graph", ())}, OF_RULE)
        self.assertEqual(list(_compiled_kept.cache_folder().glob("compiled/*")), [])

    def test_an_answer_holds_for_one_step(self):
        model, frozen, checkpoints = made(), made(), made()
        frozen.lm_head.requires_grad_(False)
        checkpoints.gradient_checkpointing_enable()
        ways = ({}, {"linear": True}, {"chunked_loss": True}, {"detached_logits": True})
        replaced = [made() for _ in ways]
        for one, how in zip(replaced, ways):
            operators.replace(one, verbose=False, **how)
        others = (
            *replaced,
            frozen,
            checkpoints,
            made().eval(),
            made(attn_implementation="eager"),
            made(attention_dropout=0.1),
        )
        keys = [_compiled_kept.key_of(one, [], {}) for one in (model, *others)]
        self.assertEqual(len({_compiled_kept.file_of(key) for key in keys}), len(keys))
        model.config._name_or_path = "checkpoint-1"
        self.assertEqual(_compiled_kept.key_of(model, [], {}), keys[0])

    def test_what_had_no_kernel_is_measured_when_it_has_one(self):
        steps = self.steps(lambda kinds: 20 + len(kinds))
        self.loaded.return_value = False
        self.tune(made(), compiled=True)
        self.assertEqual(len(steps), 1)
        self.loaded.return_value = True
        self.tune(made(), compiled=True)
        self.assertEqual(len(steps), 1 + 6)

    def test_a_recorded_answer_is_replayed(self):
        recorded = json.loads(RECORDED.read_text())["kinds"]
        model = made()
        with mock.patch.object(_compiled_kept, "read", return_value=_compiled_kept.times_of(recorded)):
            chosen = self.tune(model, compiled={"fullgraph": True})
        wanted = {kind for kind, (is_ours, *_) in recorded.items() if is_ours}
        wanted.add("attention")  # torch's was faster when it was recorded: then it is not measured
        self.assertEqual(chosen, wanted | {"embedding"})
        graphs = step(model)[2]
        found = {kind: graphs.count(name) > 0 for kind, name in (
            ("attention", "attention"), ("loss", "cross_entropy"), ("rotary", "rotary"),
            ("activation", "gated_activation"), ("norm", "rms_norm"))}  # fmt: skip
        self.assertEqual({kind for kind, there in found.items() if there}, wanted)

    def test_the_step_of_a_frozen_model_has_no_gradients(self):
        layer, x = torch.nn.Linear(4, 4).requires_grad_(False), torch.ones(2, 4, requires_grad=True)
        step = _compiled_step._Step(layer, lambda call: call(x), {"backend": "eager"}, set())
        self.assertGreater(step.time(), 0)

    def test_what_is_no_argument_of_the_compiler_is_refused_before_anything_is_tuned(self):
        for compiled in None, "reduce-overhead", 0:
            with self.assertRaisesRegex(TypeError, "compiled: .* is neither a bool nor a dict"):
                operators.tune(made(), compiled=compiled)

    def test_a_compiled_step_is_measured_and_changes_nothing(self):
        model = made()
        chosen = self.tune(model, compiled={"backend": "aot_eager"})
        self.assertLessEqual(chosen, set(_compiled.KINDS))
        self.assertIsNone(model.lm_head.weight.grad)
        self.assertEqual(len(list(_compiled_kept.cache_folder().glob("compiled/*.json"))), 1)


class Client:
    """Tunes everything at once, and has no answers."""

    address = "a client without a daemon"

    def tune(self, shapes, progress):
        return []

    def ask(self, kernel, problem, question, gpu=None):
        raise cubind.FailedPreconditionError("there is none", "kernel")
