"""python3 train.py STEPS: a round of training steps for each line that comes in, its figures as a line of
JSON out."""

import itertools
import json
import statistics
import sys

import torch

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(4096, 32, 16384, batch_first=True, dropout=0.0, device="cuda")
model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).bfloat16()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
data = torch.randn(8, 1024, 4096, device="cuda", dtype=torch.bfloat16)


def step():
    optimizer.zero_grad()
    model(data).square().mean().backward()
    optimizer.step()


def timed_round(steps):
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    marks[0].record()
    for mark in marks[1:]:
        step()
        mark.record()
    torch.cuda.synchronize()
    times = [a.elapsed_time(b) for a, b in itertools.pairwise(marks)]
    return {"step_ms": statistics.median(times), "free_bytes": torch.cuda.mem_get_info()[0]}


timed_round(int(sys.argv[1]))
print("ready", flush=True)
for _ in sys.stdin:
    print(json.dumps(timed_round(int(sys.argv[1]))), flush=True)
