"""child.py SUBJECT STEPS: warms a model up, seals the program and trains. It prints `sealed`, before the
middle step `middle`, after which it waits for a line, and as the last line JSON."""

import importlib
import json
import pathlib
import random
import re
import sys
import time

import cubind
import cubind.torch
import cubind.triton
import torch
from transformers import LlamaConfig, LlamaForCausalLM

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
from triton_counts import Counts

SIZES = {"hidden_size": 1024, "num_hidden_layers": 4, "vocab_size": 32_000, "use_cache": False}
SHORTEST, LONGEST = 63, 2049
UNIT = (
    64  # Triton's kernels are compiled for numbers that 16 divides, and for others, of tokens and of chunks
)


def llama():
    heads = {"num_attention_heads": 16, "num_key_value_heads": 4, "intermediate_size": 4096}
    return LlamaForCausalLM(LlamaConfig(**SIZES, **heads))


def of_fla(name):
    models = importlib.import_module("fla.models")
    return getattr(models, f"{name}ForCausalLM")(getattr(models, f"{name}Config")(**SIZES, num_heads=8))


class Training:
    def __init__(self, subject):
        torch.manual_seed(0)
        make = llama if subject == "llama" else lambda: of_fla(subject)
        with torch.device("cuda"):
            self.model = make().to(torch.bfloat16).train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)

    def batch(self, length):
        ids = torch.randint(SIZES["vocab_size"], (1, length), device="cuda")
        return {"input_ids": ids, "labels": ids}

    def step(self, length):
        loss = self.model(**self.batch(length)).loss
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.item()


def warm_up_operators(training):
    """A size in each bucket."""
    cubind.torch.replace(training.model, verbose=False)
    cubind.torch.never_slower(False)  # torch's own functions would not show whether kernels are missing
    lengths = [SHORTEST, *(1 << n for n in range(6, 12)), LONGEST]
    for length in lengths:
        cubind.torch.tune(training.model, progress=False, **training.batch(length))
        training.step(length)
    cubind.torch.wait()
    return lengths


def warm_up_triton(training):
    cubind.triton.install(on_miss="wait", timeout=120)
    lengths = [unit + more for unit in range(UNIT, LONGEST, UNIT) for more in (-1, 0, 1)]
    for length in lengths:
        training.step(length)
    return lengths


def fallbacks():
    return sum(int(found) for found in re.findall(r"torch's own (\d+)", cubind.torch.report()))


def train(training, steps, lengths, result):
    """Adds to `result` step by step, so that it has what was done before one that fails."""
    for number in range(steps):
        if number == steps // 2:
            print("middle", flush=True)
            sys.stdin.readline()
        start = time.perf_counter()
        result["losses"].append(training.step(lengths[number]))
        result["steps_ms"].append((time.perf_counter() - start) * 1e3)


def main():
    subject, steps = sys.argv[1], int(sys.argv[2])
    begun = time.perf_counter()
    training = Training(subject)
    met = (warm_up_operators if subject == "llama" else warm_up_triton)(training)
    draw = random.Random(0)
    lengths = [draw.randint(SHORTEST, LONGEST) for _ in range(steps)]
    result = {"losses": [], "steps_ms": [], "new_lengths": len({*lengths} - {*met})}
    result["warm_up_s"] = time.perf_counter() - begun
    fallen, counts = fallbacks(), Counts()
    counts.install()
    cubind.seal()
    print("sealed", flush=True)
    try:
        train(training, steps, lengths, result)
    except cubind.CubindError as error:
        result["error"] = f"{lengths[len(result['losses'])]} tokens: {error}"
    result |= {"compiles": counts.compiles, "fallbacks": fallbacks() - fallen}
    result["reports"] = (cubind.torch.report() + "\n" + str(cubind.triton.report())).splitlines()
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
