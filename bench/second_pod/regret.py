"""regret.py MODEL CHOICES FILE SAMPLES: by how much more time each choice takes than the best configuration.

The first call of each autotuned kernel and key is kept during one step of the model. Then every configuration
of it is measured, with cold L2 and in turn, by the oracle of bench/repeats: each load has copies of the
arguments elsewhere in memory. CHOICES: a file with [{"kernel", "key", "configuration"}]. FILE gets a list:
what the oracle says of each kernel and key, and what it had no call or no result for. The configurations are
compiled by Triton where its cache lacks them.
"""

import contextlib
import json
import os
import pathlib
import random
import sys

os.environ.setdefault("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")  # buffers as far apart as the tuner's

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
sys.path.append(str(pathlib.Path(__file__).parents[1] / "repeats"))
import oracle
import torch
from judging import MOST_MEMORY_BEFORE, judge
from model import Training
from timing import Timer
from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime.autotuner import Autotuner
from triton.runtime.errors import OutOfResources, PTXASError
from triton_counts import name_of, spelled

UNUSABLE = (CompileTimeAssertionFailure, OutOfResources, PTXASError)  # as for Triton's autotuner


class Kept:
    """The call of an autotuned kernel that gave it a new key."""

    def __init__(self, tuner, key, args, kwargs):
        self.tuner, self.kernel, self.key = tuner, name_of(tuner), str(key)
        self.args, self.kwargs = args, kwargs

    def copy(self):
        """The same call on other memory. Arguments that share memory share it again."""
        storages = {}

        def copied(value):
            if not isinstance(value, torch.Tensor):
                return value
            old = value.untyped_storage()
            if old.data_ptr() not in storages:
                storages[old.data_ptr()] = old.clone()
            new = torch.empty(0, dtype=value.dtype, device=value.device)
            new.set_(storages[old.data_ptr()], value.storage_offset(), value.size(), value.stride())
            return new

        named = {name: copied(value) for name, value in self.kwargs.items()}
        return Kept(self.tuner, self.key, tuple(copied(value) for value in self.args), named)

    def call(self, configuration):
        options = {**self.kwargs, **configuration.all_kwargs()}
        return lambda: self.tuner.fn.run(*self.args, **options)

    def configurations(self):
        """By name, those that can be launched."""
        usable = {}
        for configuration in self.tuner.configs:
            with contextlib.suppress(*UNUSABLE):
                self.call(configuration)()
                usable[spelled(configuration)] = configuration
        torch.cuda.synchronize()
        return usable


def kept_calls(name):
    """Of one training step. Triton tunes as it does."""
    kept, run = [], Autotuner.run

    def keeping(tuner, *args, **kwargs):
        known = set(tuner.cache)
        result = run(tuner, *args, **kwargs)
        kept.extend(Kept(tuner, key, args, kwargs) for key in set(tuner.cache) - known)
        return result

    Autotuner.run = keeping
    training = Training(name, seed=0)
    training.step()
    Autotuner.run = run
    return kept


def judged(kept, chosen, timer, samples):
    """What the oracle says of the distinct choices, which are named."""
    configurations, draw = kept.configurations(), random.Random(0)
    unknown = chosen - configurations.keys()
    if unknown:
        raise RuntimeError(f"no configuration that can be launched: {', '.join(sorted(unknown))}")

    @contextlib.contextmanager
    def load(names):
        other_memory = torch.empty(draw.randrange(1, MOST_MEMORY_BEFORE), dtype=torch.uint8, device="cuda")
        copy = kept.copy()
        yield {name: copy.call(configurations[name]) for name in names}
        torch.cuda.synchronize()
        del other_memory

    first, times = oracle.long_times(timer, list(configurations), load, chosen, samples)
    return judge(f"{kept.kernel} {kept.key}", sorted(chosen), first, times)


def main():
    name, choices, file, samples = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), int(sys.argv[4])
    chosen = {}
    for one in json.loads(pathlib.Path(choices).read_text()):
        chosen.setdefault((one["kernel"], one["key"]), set()).add(one["configuration"])
    kept = {(one.kernel, one.key): one for one in kept_calls(name)}
    timer, results = Timer(), []
    for (kernel, key), names in sorted(chosen.items()):
        result = {"kernel": kernel, "key": key}
        try:
            result |= judged(kept[kernel, key], names, timer, samples)
        except Exception as error:
            result["error"] = f"{type(error).__name__}: {error}"
            print(f"{kernel} {key}: FAILED {result['error']}", flush=True)
        results.append(result)
        file.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
