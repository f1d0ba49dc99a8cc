"""Compiled models with cubind's operators in their graphs on a GPU: each way in which torch.compile is used,
and a daemon that ends.

    python tests/gpu/torch/compiled_gpu.py

Needs a GPU of compute capability 8.0 or later, torch, transformers and the package cubind with its programs;
with two GPUs FSDP2 is tested too.
"""

import copy
import pathlib
import subprocess
import sys
import unittest

import cubind
import cubind.torch as operators
import torch
from cubind import programs
from transformers import LlamaConfig, LlamaForCausalLM

sys.path.append(str(pathlib.Path(__file__).parents[3] / "bench" / "common"))
from daemon import Daemon

if not torch.cuda.is_available():
    print("there is no GPU: these tests were not run", file=sys.stderr)
    sys.exit(77)

RANKS = pathlib.Path(__file__).with_name("fsdp_ranks.py")
TOKENS = {length: torch.randint(8192, (2, length), device="cuda") for length in (512, 640)}


def made(dtype=torch.bfloat16):
    sizes = {"vocab_size": 8192, "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 8, "num_key_value_heads": 2}
    torch.manual_seed(0)
    with torch.device("cuda"):
        return LlamaForCausalLM(LlamaConfig(**sizes, **heads, use_cache=False)).to(dtype).train()


def steps(model, lengths, autocast=False):
    """Losses of steps on one batch each, by whose gradients the weights change."""
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.1), []
    for length in lengths:
        torch.compiler.cudagraph_mark_step_begin()
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            loss = model(input_ids=TOKENS[length], labels=TOKENS[length]).loss
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return torch.tensor(losses)


class Compiled(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(Daemon(programs.program("cubind").parent))
        cls.client = cubind.connect(cls.daemon.address)
        operators.use(cls.client)
        cls.addClassCleanup(operators.use, None)

    def ours(self, dtype=torch.bfloat16):
        model = made(dtype)
        operators.replace(model, verbose=False)
        operators.tune(model, input_ids=TOKENS[512], labels=TOKENS[512], progress=False)
        torch._dynamo.reset()
        return model

    def check(self, lengths=(512,) * 6, change=None, **options):
        theirs, ours = made(), self.ours()
        for model in (theirs, ours):
            if change is not None:
                change(model)
        launched = operators.report()
        found = steps(torch.compile(ours, fullgraph=True, **options), lengths)
        self.assertNotEqual(operators.report(), launched)  # kernels of cubind ran
        torch.testing.assert_close(found, steps(theirs, lengths), rtol=3e-3, atol=0)

    def test_one_graph(self):
        self.check()

    def test_dynamic_sizes(self):
        self.check((512, 640, 512), dynamic=True)

    def test_cuda_graphs(self):
        self.check(mode="reduce-overhead")

    def test_activation_checkpoints(self):
        self.check(change=lambda model: model.gradient_checkpointing_enable({"use_reentrant": False}))

    def test_autocast(self):
        theirs, ours = made(torch.float32), self.ours(torch.float32)
        found = steps(torch.compile(ours, fullgraph=True), (512,) * 3, autocast=True)
        expected = steps(theirs, (512,) * 3, autocast=True)
        torch.testing.assert_close(found, expected, rtol=3e-3, atol=0)

    def test_an_exported_model(self):
        model = self.ours().eval()
        given = {"input_ids": TOKENS[512], "return_dict": False}
        with torch.no_grad():
            expected = made().eval()(**given)[0]
            found = torch.export.export(model, (), given).module()(**given)[0]
        torch.testing.assert_close(found, expected, rtol=3e-2, atol=3e-2)

    def test_when_the_daemon_ends(self):
        expected = steps(made(), (512,) * 6)
        ours = self.ours()
        compiled = torch.compile(ours, fullgraph=True)
        found = [steps(compiled, (512,) * 3)]
        self.daemon.kill()
        found.append(steps(compiled, (512,) * 3))
        torch.testing.assert_close(torch.cat(found), expected, rtol=3e-3, atol=0)
        # A graph that is made without it.
        twin = copy.deepcopy(ours)
        torch._dynamo.reset()
        other = steps(torch.compile(twin, fullgraph=True), (640,) * 2)
        torch.testing.assert_close(other, steps(ours, (640,) * 2), rtol=3e-3, atol=0)

    @unittest.skipIf(torch.cuda.device_count() < 2, "needs two GPUs")
    def test_fully_sharded(self):
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", RANKS]
        run = subprocess.run(
            command, env=self.daemon.environment, capture_output=True, text=True, timeout=120
        )
        self.assertEqual(run.stdout.count(": right"), 2, run.stdout + run.stderr[-3000:])


if __name__ == "__main__":
    unittest.main()
