"""Whether the sides compute the same: one pass against a wider type, and losses against torch's."""

import torch
from block import TORCH, make_model, texts

WIDER = {torch.bfloat16: torch.float32, torch.float32: torch.float64}

# A result may be this many times as far from the wider type's as torch's own is. Both round each step's
# result, in another order, so that neither is the truth: what counts is that ours is not of another size.
FACTOR = 2.0
# Losses may be this many times as far apart as torch's eager and compiled ones are. These differ by rounding
# alone, which training carries on from step to step, so that their distance is what rounding does; a side
# with other roundings draws another sample of it.
LOSS_FACTOR = 3.0
# ... or this far: logits of up to 4 are rounded to 1 / 256 of themselves in bf16.
LOSS_FLOOR = {torch.bfloat16: 2.0**-6, torch.float32: 1e-4}


class Pass:
    """The input of the block and the slope of its output, and what one pass gives in the wider type."""

    def __init__(self, sizes, device, dtype):
        torch.manual_seed(2)
        shape = (1, sizes.sequence, sizes.hidden)
        self.x = torch.randn(shape).to(device, dtype).requires_grad_()
        self.slope = torch.randn(shape).to(device, dtype)
        wide = make_model(sizes, TORCH, device, dtype).to(WIDER[dtype]).block
        self.truth = self._results(wide, self.x.detach().to(WIDER[dtype]).requires_grad_())
        del wide
        self.theirs = self._distances(make_model(sizes, TORCH, device, dtype).block)

    def call_of(self, block):
        """A call of one forward and one backward pass, which leaves the gradients behind."""

        def call():
            self.x.grad = None
            for parameter in block.parameters():
                parameter.grad = None
            block(self.x).backward(self.slope)

        return call

    def worst_excess(self, block):
        """The largest of the output's, the input's gradient's and the parameters' gradients' distances from
        the truth, each divided by what is allowed; above 1 is wrong."""
        pairs = zip(self._distances(block), self.theirs)
        return max(ours / (FACTOR * theirs) for ours, theirs in pairs)

    # Relative, in the norm of all elements.
    def _distances(self, block):
        found = self._results(block, self.x)
        return [
            float((ours.to(truth.dtype) - truth).norm() / truth.norm())
            for ours, truth in zip(found, self.truth)
        ]

    def _results(self, block, x):
        parameters = list(block.parameters())
        y = block(x)
        return [y.detach(), *torch.autograd.grad(y, [x, *parameters], self.slope.to(y.dtype))]


def train(model, block, steps):
    """The loss at each step. `block`: the model's, as it is run."""
    sizes = model.block.sizes
    optimizer = torch.optim.AdamW(model.parameters(), sizes.learning_rate)
    losses = []
    for text in texts(sizes, steps, model.norm.device):
        loss = model.loss(text, block)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


def compare_losses(curves, dtype):
    """How far each curve is from torch's compiled one, and what is allowed."""
    if not {"torch", "torch_compile"} <= curves.keys():
        return {"right": False, "verdict": "torch's own sides did not train"}
    theirs = curves["torch_compile"]
    apart = {name: max(abs(a - b) for a, b in zip(curve, theirs)) for name, curve in curves.items()}
    spread = apart["torch"]
    tolerance = max(LOSS_FACTOR * spread, LOSS_FLOOR[dtype])
    ours = {name: far for name, far in apart.items() if name.startswith("cubind")}
    right = all(far <= tolerance for far in ours.values()) and all(map(_falls, curves.values()))
    told = ", ".join(f"{name} {far:.5f}" for name, far in ours.items())
    verdict = (
        f"loss of torch.compile {theirs[0]:.4f} to {theirs[-1]:.4f}; the largest distance from it at any of {len(theirs)} steps: "
        f"torch eager {spread:.5f}, {told}; allowed {tolerance:.5f}"
    )
    return {"right": right, "apart": apart, "tolerance": tolerance, "verdict": verdict}


def _falls(curve):
    return sum(curve[-5:]) < sum(curve[:5])


def all_is_well(results):
    """Whether torch's and cubind's sides ran and are right. Of Liger-Kernel's both are reported."""
    failed = [name for name in results["failed"] if not name.startswith("liger")]
    excess = [worst for name, worst in results["worst_excess"].items() if not name.startswith("liger")]
    return not failed and max(excess) <= 1 and results["loss_check"]["right"]
