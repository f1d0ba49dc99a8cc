"""The models: each with random weights in bf16, and a batch. `step` gives the loss of the batch."""

import dataclasses
from collections.abc import Callable

import cubind.torch
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

try:
    from liger_kernel.transformers import apply_liger_kernel_to_llama
except ImportError:
    apply_liger_kernel_to_llama = None


@dataclasses.dataclass(frozen=True)
class Subject:
    make: Callable  # () -> module
    batch: Callable  # () -> what the module takes, by name


def tokens(vocabulary, *shape):
    ids = torch.randint(vocabulary, shape, device="cuda")
    return {"input_ids": ids, "labels": ids}


def llama():
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=128_256,
            hidden_size=2048,
            intermediate_size=8192,
            num_hidden_layers=8,
            num_attention_heads=32,
            num_key_value_heads=8,
            max_position_embeddings=8192,
            use_cache=False,
        )
    )


def gpt2():
    sizes = {"n_embd": 1024, "n_layer": 12, "n_head": 16, "n_positions": 1024}
    no_dropout = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    return GPT2LMHeadModel(GPT2Config(**sizes, **no_dropout, use_cache=False))


def bert():
    sizes = {"hidden_size": 1024, "num_hidden_layers": 12, "num_attention_heads": 16}
    no_dropout = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0)
    return BertForMaskedLM(BertConfig(**sizes, intermediate_size=4096, **no_dropout))


SUBJECTS = {
    "llama": Subject(llama, lambda: tokens(128_256, 2, 2048)),
    "llama_4096": Subject(llama, lambda: tokens(128_256, 1, 4096)),
    "gpt2": Subject(gpt2, lambda: tokens(50_257, 8, 1024)),
    "bert": Subject(bert, lambda: tokens(30_522, 16, 512)),
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


def made(subject, name):
    """The model of the side `name`, on the GPU; the same weights for each."""
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = subject.make().to(torch.bfloat16).train()
    if name.startswith("cubind"):
        cubind.torch.replace(model, verbose=False)
    elif name == "liger":
        if apply_liger_kernel_to_llama is None or not isinstance(model, LlamaForCausalLM):
            raise LookupError("liger_kernel is not installed, or has no kernels for this model")
        apply_liger_kernel_to_llama(model=model)
    return torch.compile(model) if name.endswith("compiled") else model
