"""What Triton's autotuner chooses when it tunes the same problems again and again, its code compiled once."""

import json
import pathlib
import statistics
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
sys.path.append(str(pathlib.Path(__file__).parents[1] / "kernels"))
import torch
import triton
import triton_kernel
import triton_kernels

NEAR = 1.05


class TritonProblem:
    """A problem of an autotuned kernel: `tune` chooses again, `calls` are its configurations."""

    def __init__(self, kernel, N, D):
        self.kernel, self.problem = kernel, {"N": N, "D": D, "T": "bf16"}
        self.x = torch.randn(N, D, device="cuda").to(torch.bfloat16)
        self.w = torch.randn(D, device="cuda").to(torch.bfloat16)
        self.y = torch.empty_like(self.x)
        self.winners, self.times = [], {}
        if kernel == "rmsnorm_forward":
            self.autotuner, arguments = triton_kernel.row_kernel, (self.x, self.w, self.y, N, D, 1e-6)
        else:
            self.autotuner, arguments = triton_kernels.softmax_forward_rows, (self.x, self.y, N, D)
        self.launch = lambda function, **more: function[self._grid](*arguments, POWER=D, **more)

    def _grid(self, meta):
        return (triton.cdiv(self.problem["N"], meta.get("ROWS", 1)),)

    def tune(self):
        self.autotuner.cache.clear()
        begun = time.monotonic()
        self.launch(self.autotuner)
        torch.cuda.synchronize()
        self.winners.append(self._name(self.autotuner.best_config))
        timed = {self._name(one): found[0] for one, found in self.autotuner.configs_timings.items()}
        best = min(timed.values())
        for name, milliseconds in timed.items():
            self.times.setdefault(name, []).append(milliseconds / best)
        return time.monotonic() - begun

    def _name(self, config):
        return json.dumps(config.all_kwargs())

    def calls(self):
        """Of the winners and of what half of the tunings saw within 5 % of their best."""
        near = [name for name, shares in self.times.items() if statistics.median(shares) <= NEAR]
        return {name: self._call(json.loads(name)) for name in dict.fromkeys([*self.winners, *near])}

    def _call(self, options):
        return lambda: self.launch(self.autotuner.fn, **options)


def tune_repeatedly(problems, repeats, limit):
    """(TritonProblems, seconds of each choice). No repetition is begun beyond `limit` seconds."""
    made = [TritonProblem(*one) for one in problems]
    end, seconds = time.monotonic() + limit, []
    for index in range(repeats):
        begun = time.monotonic()
        if begun + (seconds[-1] if seconds else 0) > end:
            break
        for one in made:
            one.tune()
        seconds.append(time.monotonic() - begun)
        print(f"Triton, repetition {index + 1}: {seconds[-1]:.1f} s", flush=True)
    return made, seconds
