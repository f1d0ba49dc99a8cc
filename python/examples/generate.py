"""An inference loop whose step is one CUDA graph: cubind's kernels are captured like any others. Needs a GPU.

CUBIND_EMBEDDED=1 python3 python/examples/generate.py
"""

import sys

import cubind.torch
import torch
from torch.nn import functional

LAYERS, WIDTH, BATCH, STEPS = 8, 1024, 16, 64


class Cell(torch.nn.Module):
    """One step of a recurrent model: state and token in, state out."""

    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = (
            torch.nn.RMSNorm(WIDTH),
            torch.nn.Linear(WIDTH, WIDTH),
            torch.nn.Linear(WIDTH, WIDTH),
        )

    def forward(self, x):
        return x + self.down(functional.silu(self.up(self.norm(x))))


def run(step, state, graph):
    """The states after each of STEPS steps; `graph` replays the step instead of calling it."""
    states = []
    for _ in range(STEPS):
        graph.replay() if graph else state.copy_(step(state))
        states.append(state.clone())
    return torch.stack(states)


@torch.inference_mode()
def main():
    if not torch.cuda.is_available():
        print("no GPU: there are no CUDA graphs to show")
        return 77
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(Cell() for _ in range(LAYERS))).to("cuda", torch.bfloat16)
    cubind.torch.replace(model, linear=True)

    def step(x):
        return functional.rms_norm(model(x), (WIDTH,))

    start = torch.randn(BATCH, WIDTH, device="cuda", dtype=torch.bfloat16)
    state = start.clone()
    step(state)  # asks the daemon for the kernels
    cubind.torch.wait()  # until they are loaded: no graph can load one
    expected = run(step, state, None)

    state.copy_(start)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        state.copy_(step(state))
    state.copy_(start)
    ours = run(step, state, graph)
    torch.cuda.synchronize()
    same = torch.equal(ours, expected)
    print(
        f"{STEPS} steps as a CUDA graph: {'the same bits as without' if same else 'other bits than without'}"
    )
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
