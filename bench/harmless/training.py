"""python3 training.py MODE STEPS: trains the transformer of python/examples/train.py and prints the losses
and the milliseconds of each step as a line of JSON. MODE: torch (without cubind) or cubind.

Before the middle it prints "middle" and waits for a line. From there on each step has another number of rows,
which asks cubind for kernels that it has not met.
"""

import json
import pathlib
import sys
import time

import torch
from torch.nn import functional

sys.path.append(str(pathlib.Path(__file__).parents[2] / "python/examples"))
from train import BATCH, LENGTH, VOCABULARY, make_model

WARM_UP = 20  # steps that are not timed
LENGTHS = range(LENGTH - 8, LENGTH)  # of the steps after the middle: none is longer than those before


def batches(steps, device):
    """Texts that count upwards in steps of 1 to 3."""
    generator = torch.Generator().manual_seed(1)
    for number in range(steps):
        length = LENGTH if number < steps // 2 else LENGTHS[number % len(LENGTHS)]
        start = torch.randint(VOCABULARY, (BATCH, 1), generator=generator)
        step = torch.randint(1, 4, (BATCH, 1), generator=generator)
        yield ((start + step * torch.arange(length + 1)) % VOCABULARY).to(device)


def loss_of(model, text):
    logits = model(text[:, :-1]).float()
    return functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())


def warm_up(model, device):
    """CUDA, cuBLAS and the allocator meet every size, before cubind has a part in it."""
    for length in (LENGTH, *LENGTHS) * 2:
        loss_of(model, torch.zeros(BATCH, length + 1, dtype=torch.long, device=device)).backward()
        model.zero_grad()


def finish(device):
    if device == "cuda":
        torch.cuda.synchronize()


def main():
    mode, steps = sys.argv[1], int(sys.argv[2])
    device, dtype = ("cuda", torch.bfloat16) if torch.cuda.is_available() else ("cpu", torch.float32)
    attend, step, wait = functional.scaled_dot_product_attention, lambda: None, lambda: True
    warm_up(make_model(attend, device, dtype), device)
    if mode == "cubind":
        import cubind.torch  # noqa: PLC0415

        attend = cubind.torch.scaled_dot_product_attention
        step, wait = cubind.torch.step, cubind.torch.wait
    model = make_model(attend, device, dtype)
    if mode == "cubind":
        cubind.torch.replace(model, linear=True, verbose=False)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    losses, times, loaded = [], [], None
    for number, text in enumerate(batches(steps, device)):
        if number == 1:
            loaded = wait()
        if number == steps // 2:
            print("middle", flush=True)
            sys.stdin.readline()
        finish(device)
        start = time.perf_counter()
        loss = loss_of(model, text)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step()
        finish(device)
        times.append(1e3 * (time.perf_counter() - start))
        losses.append(loss.item())
    report = cubind.torch.report().splitlines() if mode == "cubind" else []
    before, after = times[WARM_UP : steps // 2], times[steps // 2 :]
    print(json.dumps({"losses": losses, "before": before, "after": after, "loaded": loaded, "report": report}))  # fmt: skip


if __name__ == "__main__":
    main()
