"""One process of the job: rank.py LAYERS [--steps] FILE compiles a Llama with max-autotune and writes what it
took to FILE. --steps: nothing is written; for each line of its standard input it runs STEPS steps and prints
their median in milliseconds.
"""

import collections
import functools
import gc
import json
import os
import pathlib
import statistics
import sys
import time

import torch
from torch._dynamo.utils import counters
from torch._inductor import ir, select_algorithm
from torch._inductor.runtime.triton_heuristics import CachingAutotuner
from transformers import LlamaConfig, LlamaForCausalLM

STEPS = 100


class Seen:
    """What Inductor measured, and what it chose for each product."""

    def __init__(self):
        self.candidates, self.configurations, self.chosen = 0, 0, []
        algorithms = select_algorithm
        self.before(algorithms.AlgorithmSelectorCache, "benchmark", self.measured)
        self.before(CachingAutotuner, "bench", self.configured)
        self.before(ir.MultiTemplateBuffer, "finalize_as_triton_caller", lambda _, caller: self.chose(caller))
        self.before(algorithms.TritonTemplateCaller, "output_node", self.chose)
        self.before(algorithms.ExternKernelCaller, "output_node", self.chose)

    def before(self, owner, name, notice):
        original = getattr(owner, name)

        @functools.wraps(original)  # cubind looks at the signature
        def wrapped(*arguments, **named):
            notice(*arguments[:2])
            return original(*arguments, **named)

        setattr(owner, name, wrapped)

    def measured(self, _, choices):
        self.candidates += len(choices)

    def configured(self, *_):
        self.configurations += 1

    def chose(self, caller, *_):
        sizes = " ".join("x".join(map(str, node.get_size())) for node in caller.input_nodes)
        kernel = caller.choice.name if hasattr(caller, "choice") else caller.name.rpartition("_")[0]
        self.chosen.append(f"{sizes} {kernel} {getattr(caller, 'description', '')}")

    def as_json(self):
        inductor = collections.Counter(counters["inductor"])
        return {
            "candidates": self.candidates,
            "configurations": self.configurations,
            "chosen": self.chosen,
            "graphs_from_cache": inductor["fxgraph_cache_hit"],
            "kernels": {
                f"{tuner.inductor_meta.get('kernel_name')} {pathlib.Path(tuner.filename or '').name}": str(
                    tuner.launchers[0].config
                )
                for tuner in gc.get_objects()
                if type(tuner) is CachingAutotuner and len(tuner.launchers) == 1
            },
        }


def compiled_step(layers):
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=1024,
        intermediate_size=2816,
        num_hidden_layers=layers,
        num_attention_heads=16,
        num_key_value_heads=4,
        vocab_size=8192,
        use_cache=False,
    )
    model = torch.compile(LlamaForCausalLM(config).to("cuda", torch.bfloat16), mode="max-autotune")
    ids = torch.randint(0, config.vocab_size, (4, 512), device="cuda")

    def step():
        torch.compiler.cudagraph_mark_step_begin()
        with torch.no_grad():
            model(input_ids=ids)

    return step


def differences(file):
    """Of the choices of all ranks, told by cubind."""
    import torch.distributed  # noqa: PLC0415
    from cubind import inductor  # noqa: PLC0415

    meeting = file.parent.parent / "meeting"
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks)
    try:
        return f"{inductor.verify_ranks()} choices are the same"
    except RuntimeError as error:
        return str(error)[:2000]
    finally:
        torch.distributed.destroy_process_group()


def timed(step):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    step()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def main():
    layers, file = int(sys.argv[1]), pathlib.Path(sys.argv[-1])
    marks = {"imported": time.time()}
    seen = Seen()
    step = compiled_step(layers)
    torch.cuda.synchronize()
    marks["model"] = time.time()
    step()
    torch.cuda.synchronize()
    marks["first_step"] = time.time()
    result = {"marks_s": marks, **seen.as_json()}
    if cubind := sys.modules.get("cubind.inductor"):
        result["report"] = cubind.report().splitlines()
    if "--steps" not in sys.argv:
        result["ranks"] = differences(file) if cubind else None
        file.write_text(json.dumps(result))
        return
    print("ready", flush=True)
    for _ in sys.stdin:
        print(statistics.median(timed(step) for _ in range(STEPS)), flush=True)


main()
