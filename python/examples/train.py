"""Trains a two-layer transformer for 50 steps, with torch's operators and with cubind's, and compares the
losses.

    python3 python/examples/train.py [--compile]

On a GPU in bf16, with the kernels of a daemon (CUBIND_EMBEDDED=1 starts one); on the CPU in float32, with
torch's formulas. Exit status 1: the losses differ.
"""

import argparse
import sys

import cubind.torch
import torch
from torch.nn import functional

LAYERS, HEADS, HEAD, BATCH, LENGTH, VOCABULARY, STEPS = 2, 4, 64, 8, 96, 64, 50
WIDTH = HEADS * HEAD
TOLERANCE = 0.05  # between the losses at every step: bf16 rounds to 1 / 256


class Layer(torch.nn.Module):
    """Attention and a perceptron, each behind a norm. attend: torch's scaled_dot_product_attention or
    cubind's."""

    def __init__(self, attend):
        super().__init__()
        self.attend = attend
        self.first, self.second = torch.nn.RMSNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(self.first(x)).view(*x.shape[:2], 3, HEADS, HEAD).permute(2, 0, 3, 1, 4)
        x = x + self.out(self.attend(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape))
        return x + self.down(functional.gelu(self.up(self.second(x))))


def make_model(attend, device, dtype):
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Embedding(VOCABULARY, WIDTH),
        *(Layer(attend) for _ in range(LAYERS)),
        torch.nn.RMSNorm(WIDTH),
        torch.nn.Linear(WIDTH, VOCABULARY),
    ).to(device, dtype)


def batches(device):
    """Texts that count upwards in steps of 1 to 3: what follows can be learned."""
    generator = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        start = torch.randint(VOCABULARY, (BATCH, 1), generator=generator)
        step = torch.randint(1, 4, (BATCH, 1), generator=generator)
        yield ((start + step * torch.arange(LENGTH + 1)) % VOCABULARY).to(device)


def train(model, device):
    """The loss at each step."""
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    losses = []
    for text in batches(device):
        logits = model(text[:, :-1]).float()
        loss = functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        cubind.torch.step()
        losses.append(loss.item())
    return losses


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--compile", action="store_true", help="with torch.compile")
    options = parser.parse_args()
    device, dtype = ("cuda", torch.bfloat16) if torch.cuda.is_available() else ("cpu", torch.float32)
    curves = []
    for attend in (functional.scaled_dot_product_attention, cubind.torch.scaled_dot_product_attention):
        model = make_model(attend, device, dtype)
        if attend is not functional.scaled_dot_product_attention:
            cubind.torch.replace(model, linear=True)
        curves.append(train(torch.compile(model) if options.compile else model, device))
    theirs, ours = curves
    worst = max(abs(a - b) for a, b in zip(theirs, ours))
    print(f"loss of torch {theirs[0]:.4f} to {theirs[-1]:.4f}, of cubind {ours[0]:.4f} to {ours[-1]:.4f}")
    print(f"the losses differ by at most {worst:.4f}, the tolerance is {TOLERANCE}")
    return 0 if worst < TOLERANCE and ours[-1] < ours[0] / 2 else 1


if __name__ == "__main__":
    sys.exit(main())
