"""A model of flash-linear-attention, unedited, with random weights in bf16."""

import importlib

import torch

SIZES = {
    "hidden_size": 1024,
    "num_hidden_layers": 4,
    "num_heads": 8,
    "vocab_size": 32_000,
    "use_cache": False,
}
BATCH, LENGTH, BATCHES = 4, 2048, 4


class Training:
    """`name`: of a model of fla.models, such as DeltaNet. All ranks have the same weights."""

    def __init__(self, name, seed):
        models = importlib.import_module("fla.models")
        torch.manual_seed(0)
        config = getattr(models, f"{name}Config")(**SIZES)
        with torch.device("cuda"):
            self.model = getattr(models, f"{name}ForCausalLM")(config).to(torch.bfloat16).train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        torch.manual_seed(seed)
        self.batches = torch.randint(SIZES["vocab_size"], (BATCHES, BATCH, LENGTH), device="cuda")
        self.steps = 0

    def step(self):
        """The loss; the GPU has finished."""
        ids = self.batches[self.steps % BATCHES]
        loss = self.model(input_ids=ids, labels=ids).loss
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.steps += 1
        torch.cuda.synchronize()
        return loss.item()
