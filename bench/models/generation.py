"""Generation of 256 tokens for eight prompts by Llama of transformers: torch, and replace(), in turns.

    CUBIND_EMBEDDED=1 python3 bench/models/generation.py --output FILE

The prompts have 256 tokens, all real or padded on the left. generate() with its dynamic cache, and decoding
with a static cache as a CUDA graph. Prints the seconds of three runs of each side. Needs what bench/models
needs. Exit status 1: a graph's tokens are not those of the same calls without it.
"""

import collections
import json
import pathlib
import sys
import time

import cubind.torch
import torch
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
from machine import toolchain

ROWS, PROMPT, NEW, VOCABULARY = 8, 256, 256, 32_000
SIDES = ("torch", "cubind")


def made(side):
    torch.manual_seed(0)
    sizes = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 8}
    heads = {"num_attention_heads": 32, "num_key_value_heads": 8}
    with torch.device("cuda"):
        model = LlamaForCausalLM(LlamaConfig(vocab_size=VOCABULARY, **sizes, **heads)).bfloat16().eval()
    if side == "cubind":
        cubind.torch.replace(model, verbose=False)
    return model


def prompts(is_padded):
    ids = torch.randint(3, VOCABULARY, (ROWS, PROMPT), device="cuda")
    first = torch.arange(ROWS, device="cuda")[:, None] * 28 * is_padded
    return ids, (torch.arange(PROMPT, device="cuda") >= first).long()


def generated(model, ids, mask):
    lengths = {"max_new_tokens": NEW, "min_new_tokens": NEW}
    return model.generate(ids, attention_mask=mask, **lengths, do_sample=False, pad_token_id=0)


class Graphed:
    """Decoding as a CUDA graph."""

    def __init__(self, model, ids, mask):
        self.model, self.ids = model, ids
        self.mask = torch.cat([mask, mask.new_ones(ROWS, NEW)], 1)
        self.positions = (mask.cumsum(-1) - 1).clamp_min(0)
        self.cache = StaticCache(config=model.config, max_cache_len=PROMPT + NEW)
        self.token, self.position = ids[:, -1:].clone(), self.positions[:, -1:].clone()
        self.prefill()
        for _ in range(3):
            self.step()
            cubind.torch.wait()
        self.prefill()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.step()

    def _next(self, ids, mask, positions):
        given = {"attention_mask": mask, "position_ids": positions, "past_key_values": self.cache}
        logits = self.model(ids, **given, use_cache=True, logits_to_keep=1).logits
        self.token.copy_(logits[:, -1:].argmax(-1))

    def prefill(self):
        self.cache.reset()
        self._next(self.ids, self.mask[:, :PROMPT], self.positions)
        self.position.copy_(self.positions[:, -1:] + 1)

    def step(self):
        self._next(self.token, self.mask, self.position)
        self.position.add_(1)

    def run(self, step):
        self.prefill()
        tokens = [self.token.clone()]
        for _ in range(NEW - 1):
            step()
            tokens.append(self.token.clone())
        return torch.cat(tokens, 1)


@torch.no_grad()
def measured(models, is_padded, times):
    given = prompts(is_padded)
    for _ in range(2):
        for model in models.values():
            generated(model, *given)
            cubind.torch.wait()
    graphs = {side: Graphed(model, *given) for side, model in models.items()}
    for _ in range(3):
        for side, model in models.items():
            runs = {
                "generate": lambda model=model: generated(model, *given),
                "graph": lambda graph=graphs[side]: graph.run(graph.graph.replay),
            }
            for how, run in runs.items():
                torch.cuda.synchronize()
                start = time.perf_counter()
                run()
                torch.cuda.synchronize()
                name = f"{side}, {how}, {'padded' if is_padded else 'whole'} prompts"
                times[name].append(time.perf_counter() - start)
    graph = graphs["cubind"]
    return torch.equal(graph.run(graph.graph.replay), graph.run(graph.step))


def main():
    parser = command_line.make_parser(__doc__, required=["output"])
    output = parser.parse_args().output
    models, times = {side: made(side) for side in SIDES}, collections.defaultdict(list)
    for is_padded in (True, False):
        cubind.torch.tune(generated, models["cubind"], *prompts(is_padded), backward=False, progress=False)
    same = [measured(models, is_padded, times) for is_padded in (True, False)]
    for name, seconds in times.items():
        print(f"{name}: {', '.join(f'{one:.3f}' for one in seconds)} s")
    found = {"toolchain": toolchain(None), "seconds": times, "same": same, "report": cubind.torch.report()}
    output.write_text(json.dumps(found, indent=1))
    if not all(same):
        sys.exit("a graph's tokens are not those of the same calls without it")


if __name__ == "__main__":
    main()
