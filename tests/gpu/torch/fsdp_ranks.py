"""One rank of the test of FSDP2, which torchrun starts twice: a sharded, compiled model with cubind's
operators trains as one without them does. Prints "rank N: right" at its end."""

import os

import cubind.torch as operators
import torch
import torch.distributed
from torch.distributed.fsdp import fully_shard
from transformers import LlamaConfig, LlamaForCausalLM

rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", rank))
torch.manual_seed(rank)
ids = torch.randint(8192, (2, 512), device="cuda")


def made():
    sizes = {"vocab_size": 8192, "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 8, "num_key_value_heads": 2}
    torch.manual_seed(0)
    with torch.device("cuda"):
        return LlamaForCausalLM(LlamaConfig(**sizes, **heads, use_cache=False)).bfloat16().train()


def losses(model):
    for layer in model.model.layers:
        layer.compile()
        fully_shard(layer)
    fully_shard(model)
    optimizer, found = torch.optim.SGD(model.parameters(), lr=0.1), []
    for _ in range(4):
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        found.append(loss.item())
        optimizer.step()
        optimizer.zero_grad()
    return torch.tensor(found)


ours = made()
operators.replace(ours, verbose=False)
operators.tune(ours, input_ids=ids, labels=ids, progress=False)
found = losses(ours)
chosen = {kind for module in ours.modules() for kind in getattr(module, "_in_graph", ())}
assert chosen, operators.report()
torch._dynamo.reset()
torch.testing.assert_close(found, losses(made()), rtol=3e-3, atol=0)
print(f"rank {rank}: right", flush=True)
torch.distributed.destroy_process_group()
