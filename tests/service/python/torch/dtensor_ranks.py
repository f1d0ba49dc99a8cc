"""One rank of the test of DTensors, which torchrun starts twice. Prints "rank N: right" at its end."""

import cubind
import cubind.torch as operators
import torch
import torch.distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
from torch.nn import functional

torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
mesh = init_device_mesh("cpu", (2,))
CASES = {
    "rms_norm": (lambda x, w: operators.rms_norm(x, (16,), w, 1e-6), [(3, 5, 16)], [(16,)]),
    "layer_norm": (lambda x, w, b: operators.layer_norm(x, (16,), w, b), [(3, 5, 16)], [(16,), (16,)]),
    "softmax": (operators.softmax, [(3, 5, 16)], []),
    "linear": (operators.linear, [(3, 5, 16)], [(8, 16), (8,)]),
    "linear without bias": (operators.linear, [(3, 5, 16)], [(8, 16)]),
    "add_rms_norm": (
        lambda x, r, w: sum(operators.add_rms_norm(x, r, w, 1e-6)), [(3, 5, 16), (3, 5, 16)], [(16,)],
    ),
    "layer_norm_linear": (operators.layer_norm_linear, [(3, 5, 16)], [(16,), (16,), (8, 16), (8,)]),
    "weighted_sum": (operators.weighted_sum, [(3, 5, 16)], [(16,)]),
    "attention": (
        lambda q, k, v: operators.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True),
        [(2, 4, 5, 8), (2, 2, 5, 8), (2, 2, 5, 8)],
        [],
    ),
}  # fmt: skip


def made(shapes):
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


def distributed(tensors, placement):
    return [distribute_tensor(t.detach(), mesh, [placement]).requires_grad_() for t in tensors]


def same_as_without(name, placement):
    """The result and all gradients, and where they lie."""
    operator, input_shapes, parameter_shapes = CASES[name]
    inputs, parameters = made(input_shapes), made(parameter_shapes)
    expected = operator(*inputs, *parameters)
    slope = torch.randn_like(expected)
    expected.backward(slope)
    placed = [*distributed(inputs, placement), *distributed(parameters, Replicate())]
    result = operator(*placed)
    assert result.placements == (placement,), (name, result.placements)
    assert result.shape == expected.shape and result.stride() == expected.stride(), (name, result.stride())
    result.backward(distribute_tensor(slope, mesh, [placement]))
    torch.testing.assert_close(result.full_tensor(), expected)
    for given, own in zip((*inputs, *parameters), placed):
        assert not any(p.is_partial() for p in own.grad.placements), (name, own.grad.placements)
        torch.testing.assert_close(own.grad.full_tensor(), given.grad)


def refused(call, *words):
    """The call raises and says these."""
    try:
        call()
    except cubind.InvalidArgumentError as error:
        assert all(word in str(error) for word in words), str(error)
    else:
        raise AssertionError(f"nothing was refused, expected {words}")


def placements_that_do_not_work():
    (x,), (w,) = made([(4, 16)]), made([(16,)])
    (rows,), (columns,) = distributed([x], Shard(0)), distributed([x], Shard(1))
    (weight,), (sharded,) = distributed([w], Replicate()), distributed([w], Shard(0))
    partial = torch.distributed.tensor.DTensor.from_local(x.detach(), mesh, [Partial()])

    def norm(x, w):
        return operators.rms_norm(x, (16,), w, 1e-6)

    refused(
        lambda: operators.softmax(columns),
        "argument input",
        "Shard(dim=1)",
        "Replicate() or Shard(0) on",
        "input.redistribute(placements=[Replicate()])",
    )
    refused(lambda: operators.softmax(partial), "Partial(sum)", "redistribute")
    refused(lambda: norm(rows, sharded), "argument weight", "Shard(dim=0)", "weight.redistribute(")
    refused(lambda: norm(rows, w), "argument weight", "plain tensor", "distribute_tensor()")
    refused(lambda: norm(x, weight), "argument input", "plain tensor", "fully_shard()")
    q, k = made([(2, 4, 6, 8), (2, 3, 6, 8)])
    heads, other = distributed([q], Shard(1)), distributed([q], Shard(2))
    attend = operators.scaled_dot_product_attention
    refused(lambda: attend(*other, *other, *other), "Shard(dim=2)", "Shard(0) or Shard(1) on")
    refused(lambda: attend(*heads, *distributed([q], Shard(0)), *heads), "argument key", "placed alike")
    (three,) = distributed([k], Shard(1))
    refused(lambda: attend(*heads, three, three), "argument key", "2 ranks do not divide", "[2, 3, 6, 8]")


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.second = torch.nn.RMSNorm(16), torch.nn.LayerNorm(16)
        self.first, self.last = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)

    def forward(self, x):
        return self.second(self.last(functional.silu(self.first(self.norm(x)))))


def losses(shard):
    """Of ten steps, with the rows of each batch on all ranks or shared out."""
    torch.manual_seed(3)
    model = Model().double()
    operators.replace(model, linear=True, verbose=False)
    if shard:
        fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    found = []
    for _ in range(10):
        x, target = torch.randn(6, 16, dtype=torch.float64), torch.randn(6, 16, dtype=torch.float64)
        if shard:
            x, target = x.chunk(2)[rank], target.chunk(2)[rank]
        loss = functional.mse_loss(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if shard:
            torch.distributed.all_reduce(loss := loss.detach().clone())
            loss /= 2
        found.append(loss.item())
    return found


for name in CASES:
    torch.manual_seed(1)
    same_as_without(name, Shard(0))
    same_as_without(name, Replicate())
same_as_without("attention", Shard(1))
same_as_without("softmax", Shard(1))
placements_that_do_not_work()
torch.testing.assert_close(losses(shard=True), losses(shard=False))
# In one write: unbuffered, print() writes the end of the line by itself, and another rank may come between.
print(f"rank {rank}: right\n", end="", flush=True)
torch.distributed.destroy_process_group()
