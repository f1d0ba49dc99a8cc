"""A block of a Llama model, whose operators are given, and the model around it that is trained."""

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

EPS = 1e-5
ROPE_BASE = 10_000.0


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Of the block; `sequence` is the rows of a batch, which has one text."""

    hidden: int
    heads: int
    mlp: int
    sequence: int
    vocabulary: int
    learning_rate: float

    @property
    def head(self):
        return self.hidden // self.heads


LLAMA = Sizes(
    hidden=4096, heads=32, mlp=11008, sequence=4096, vocabulary=512, learning_rate=1e-4
)  # a layer of Llama 2 7B
SMALL = Sizes(hidden=64, heads=4, mlp=176, sequence=32, vocabulary=64, learning_rate=3e-3)


@dataclasses.dataclass(frozen=True)
class Operators:
    """The parts of a block.

    rms_norm(x, weight), attend(q, k, v) causally with q, k, v of [1, heads, sequence, head], swiglu(gate,
    up), rotate(q, k, cos, sin), linear(x, weight).
    """

    rms_norm: Callable[..., Any]
    attend: Callable[..., Any]
    swiglu: Callable[..., Any]
    rotate: Callable[..., Any]
    linear: Callable[..., Any]


def torch_rms_norm(x, weight):
    return functional.rms_norm(x, weight.shape, weight, EPS)


def torch_attend(q, k, v):
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def torch_swiglu(gate, up):
    return functional.silu(gate) * up


def torch_rotate(q, k, cos, sin):
    def rotated(x):
        first, second = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-second, first), dim=-1) * sin

    return rotated(q), rotated(k)


TORCH = Operators(torch_rms_norm, torch_attend, torch_swiglu, torch_rotate, functional.linear)


class Block(torch.nn.Module):
    """Attention with rotary positions, and a SwiGLU perceptron, each behind a norm and with a residual
    connection."""

    def __init__(self, sizes, operators):
        super().__init__()
        self.sizes, self.operators = sizes, operators
        H, F = sizes.hidden, sizes.mlp
        self.first, self.second = (torch.nn.Parameter(torch.ones(H)) for _ in range(2))
        self.query, self.key, self.value, self.out = (_matrix(H, H) for _ in range(4))
        self.gate, self.up, self.down = _matrix(F, H), _matrix(F, H), _matrix(H, F)
        angles = torch.outer(torch.arange(sizes.sequence), _frequencies(sizes.head)).repeat(1, 2)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, x):
        """x: [1, sequence, hidden]."""
        ours = self.operators
        normed = ours.rms_norm(x, self.first)
        q, k, v = (
            ours.linear(normed, weight).unflatten(-1, (self.sizes.heads, -1)).transpose(1, 2)
            for weight in (self.query, self.key, self.value)
        )
        q, k = ours.rotate(q, k, self.cos, self.sin)
        x = x + ours.linear(ours.attend(q, k, v).transpose(1, 2).flatten(2), self.out)
        normed = ours.rms_norm(x, self.second)
        gate, up = ours.linear(normed, self.gate), ours.linear(normed, self.up)
        return x + ours.linear(ours.swiglu(gate, up), self.down)


def _matrix(rows, columns):
    return torch.nn.Parameter(torch.randn(rows, columns) * columns**-0.5)


def _frequencies(head):
    return ROPE_BASE ** (-torch.arange(0, head, 2) / head)


class Model(torch.nn.Module):
    """One block between an embedding and the logits. The block may be replaced by its compiled form, which is
    no part of the parameters."""

    def __init__(self, sizes, operators):
        super().__init__()
        self.block = Block(sizes, operators)
        self.embedding = torch.nn.Parameter(torch.randn(sizes.vocabulary, sizes.hidden))
        self.norm = torch.nn.Parameter(torch.ones(sizes.hidden))
        self.head = _matrix(sizes.vocabulary, sizes.hidden)

    def loss(self, text, block):
        """The mean cross entropy of each next token of `text`: [1, sequence + 1]."""
        x = block(functional.embedding(text[:, :-1], self.embedding))
        logits = functional.linear(self.block.operators.rms_norm(x, self.norm), self.head).float()
        return functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())


def make_model(sizes, operators, device, dtype):
    """The same parameters for all operators."""
    torch.manual_seed(0)
    return Model(sizes, operators).to(device, dtype)


def texts(sizes, steps, device):
    """Texts that count upwards in steps of 1 to 3: what follows can be learned."""
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        start = torch.randint(sizes.vocabulary, (1, 1), generator=generator)
        strides = torch.randint(1, 4, (1, sizes.sequence), generator=generator)
        text = torch.cat((start, start + strides.cumsum(1)), dim=1) % sizes.vocabulary
        yield text.to(device)
