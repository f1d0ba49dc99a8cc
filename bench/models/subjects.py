"""The models: each with random weights in bf16, and a batch. `step` gives the loss of the batch."""

import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple

import cubind.torch
import torch
from torch import nn
from torch.nn import functional
from transformers import (
    BertConfig,
    BertForMaskedLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    ViTConfig,
    ViTForImageClassification,
)
from transformers.models.llama import modeling_llama

try:
    from liger_kernel.transformers import apply_liger_kernel_to_llama
except ImportError:
    apply_liger_kernel_to_llama = None


@dataclasses.dataclass(frozen=True)
class Subject:
    make: Callable  # (**of the configuration) -> module
    batch: Callable  # () -> what the module takes, by name
    attention: str | None = None  # the implementation that computes what the model is, if one is named


def tokens(vocabulary, *shape):
    ids = torch.randint(vocabulary, shape, device="cuda")
    return {"input_ids": ids, "labels": ids}


# Half of the tokens are real: rows of every length, in another order in each batch.
def padded(vocabulary, rows, length):
    batch = tokens(vocabulary, rows, length)
    lengths = (torch.randperm(rows, device="cuda") * 2 + 1) * length // (2 * rows)
    real = torch.arange(length, device="cuda") < lengths[:, None]
    labels = batch["labels"].masked_fill(~real, -100)
    return {"input_ids": batch["input_ids"], "attention_mask": real.long(), "labels": labels}


# As DataCollatorWithFlattening: lognormal lengths, sigma 1, of a mean of 512.
def packed(vocabulary, length):
    batch = tokens(vocabulary, 1, length)
    ends = torch.empty(length).log_normal_(math.log(512) - 0.5, 1).clamp_(1, 4096).long().cumsum(0)
    starts = torch.zeros(length, dtype=torch.long)
    starts[ends[ends < length]] = ends[ends < length]
    positions = (torch.arange(length) - starts.cummax(0).values)[None].cuda()
    labels = batch["labels"].masked_fill(positions == 0, -100)
    return {"input_ids": batch["input_ids"], "position_ids": positions, "labels": labels}


DECODER = {
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 8192,
    "use_cache": False,
}


def llama(**given):
    return LlamaForCausalLM(LlamaConfig(vocab_size=128_256, num_hidden_layers=8, **DECODER, **given))


def qwen3(**given):
    sizes = {**DECODER, "num_attention_heads": 16, "head_dim": 128, "intermediate_size": 6144}
    return Qwen3ForCausalLM(Qwen3Config(vocab_size=151_936, num_hidden_layers=10, **sizes, **given))


def mistral(**given):
    sizes = {**DECODER, "num_attention_heads": 16, "head_dim": 128, "sliding_window": 1024}
    return MistralForCausalLM(MistralConfig(vocab_size=32_768, num_hidden_layers=8, **sizes, **given))


# Two of eight experts for each token, by grouped products.
def mixtral(**given):
    sizes = {**DECODER, "num_attention_heads": 16, "head_dim": 128, "intermediate_size": 7168}
    return MixtralForCausalLM(MixtralConfig(vocab_size=32_000, num_hidden_layers=4, **sizes, **given))


# Every other layer has the window.
def gemma2(**given):
    sizes = {
        "hidden_size": 2304,
        "intermediate_size": 9216,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
    }
    sizes = {**DECODER, **sizes, "head_dim": 256, "sliding_window": 1024}
    return Gemma2ForCausalLM(Gemma2Config(vocab_size=65_536, num_hidden_layers=6, **sizes, **given))


def gpt2():
    sizes = {"n_embd": 1024, "n_layer": 12, "n_head": 16, "n_positions": 1024}
    no_dropout = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    return GPT2LMHeadModel(GPT2Config(**sizes, **no_dropout, use_cache=False))


def bert():
    sizes = {"hidden_size": 1024, "num_hidden_layers": 12, "num_attention_heads": 16}
    no_dropout = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0)
    return BertForMaskedLM(BertConfig(**sizes, intermediate_size=4096, **no_dropout))


def phi3():
    sizes = {"vocab_size": 32_064, "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 8}
    return Phi3ForCausalLM(Phi3Config(**sizes, num_attention_heads=32, use_cache=False))


def vit():
    sizes = {
        "hidden_size": 1024,
        "num_hidden_layers": 12,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
    }
    return ViTForImageClassification(ViTConfig(**sizes, hidden_dropout_prob=0.0, num_labels=1000))


def images(count):
    pixels = torch.randn(count, 3, 224, 224, device="cuda", dtype=torch.bfloat16)
    return {"pixel_values": pixels, "labels": torch.randint(1000, (count,), device="cuda")}


class Output(NamedTuple):
    loss: torch.Tensor


class Layer(nn.Module):
    """A block of a transformer as one writes it oneself: q, k and v are views of one projection."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm, self.mlp_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.attention = functional.scaled_dot_product_attention

    def forward(self, x):
        batch, length, width = x.shape
        projected = self.qkv(self.attention_norm(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = (one.transpose(1, 2) for one in projected.unbind(2))
        x = x + self.out(self.attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape))
        return x + self.down(functional.gelu(self.up(self.mlp_norm(x))))


class Block(nn.Module):
    def __init__(self, layers=4, width=1536, heads=12):
        super().__init__()
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(layers)))

    def forward(self, x, target):
        return Output(functional.mse_loss(self.layers(x), target))

    def use(self, attention):
        for layer in self.layers:
            layer.attention = attention


def random_rows(*shape):
    return {name: torch.randn(shape, device="cuda", dtype=torch.bfloat16) for name in ("x", "target")}


def in_batches(name, make, vocabulary, attention=None):
    """A decoder with whole, padded and packed batches of 4096, 8192 and 8192 tokens."""
    return {
        name: Subject(make, lambda: tokens(vocabulary, 2, 2048), attention),
        f"{name}_padded": Subject(make, lambda: padded(vocabulary, 4, 2048), attention),
        f"{name}_packed": Subject(make, lambda: packed(vocabulary, 8192), attention),
    }


SUBJECTS = {
    **in_batches("llama", llama, 128_256),
    **in_batches("qwen3", qwen3, 151_936),
    **in_batches("mistral", mistral, 32_768),
    **in_batches("gemma2", gemma2, 65_536, "eager"),  # its "sdpa" leaves the soft-cap out
    "llama_4096": Subject(llama, lambda: tokens(128_256, 1, 4096)),
    "gpt2": Subject(gpt2, lambda: tokens(50_257, 8, 1024)),
    "bert": Subject(bert, lambda: tokens(30_522, 16, 512)),
    "mixtral": Subject(mixtral, lambda: tokens(32_000, 4, 2048)),
    "phi3": Subject(phi3, lambda: tokens(32_064, 2, 2048)),
    "vit": Subject(vit, lambda: images(64)),
    "block": Subject(Block, lambda: random_rows(3, 777, 1536)),
}


class Side:
    """A copy of the model with an optimizer of its own."""

    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def step(self, batch):
        loss = self.model(**batch).loss
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss


class Float32Side(Side):
    """In float32 with products in TF32. The weights stay values of bf16."""

    @torch.no_grad()
    def _round(self):
        for parameter in self.model.parameters():
            parameter.copy_(parameter.bfloat16())

    def step(self, batch):
        torch.set_float32_matmul_precision("high")
        loss = super().step(batch)
        torch.set_float32_matmul_precision("highest")
        self._round()
        return loss


def apply_liger(model):
    """Gives Liger's kernels to this model alone. Liger also puts some into the module of transformers, where
    every Llama of the process would find them; here they are there during the model's forward pass alone."""

    def put(named):
        for name, value in named.items():
            setattr(modeling_llama, name, value)

    def forward(*arguments, **named):
        put(of_liger)
        try:
            return liger_forward(*arguments, **named)
        finally:
            put(own)

    names = ("apply_rotary_pos_emb", "LlamaRMSNorm", "LlamaMLP")
    own = {name: getattr(modeling_llama, name) for name in names}
    apply_liger_kernel_to_llama(model=model)
    of_liger = {name: getattr(modeling_llama, name) for name in names}
    put(own)
    liger_forward, model.forward = model.forward, forward


FLOAT32 = "torch_float32"
IMPLEMENTATIONS = {"torch_eager": "eager", "torch_flex": "flex_attention"}


def made(subject, name):
    """The model of the side `name`, on the GPU; the same weights for each."""
    torch.manual_seed(0)
    with torch.device("cuda"):
        attention = IMPLEMENTATIONS.get(name, subject.attention)
        given = {} if attention is None else {"attn_implementation": attention}
        model = subject.make(**given).to(torch.bfloat16).train()
    if name == FLOAT32:
        model.float()
    if name.startswith("cubind"):
        options = {"chunked_loss": "chunked" in name, "detached_logits": "detached" in name}
        cubind.torch.replace(model, verbose=False, **options)
        if isinstance(model, Block):
            model.use(cubind.torch.scaled_dot_product_attention)
    elif name == "liger":
        if apply_liger_kernel_to_llama is None or not isinstance(model, LlamaForCausalLM):
            raise LookupError("liger_kernel is not installed, or has no kernels for this model")
        apply_liger(model)
    if name in ("cubind_compiled", "cubind_detached_compiled"):
        cubind.torch.tune(model, progress=False, **subject.batch())
        return torch.compile(model, fullgraph=True)
    return torch.compile(model) if name.endswith("compiled") else model
