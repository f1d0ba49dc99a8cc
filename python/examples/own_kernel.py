"""A CUDA kernel of one's own, squared_relu/, as an operator of torch with autograd.

CUBIND_KERNEL_PATH=python/examples/squared_relu python3 python/examples/own_kernel.py
"""

import functools

import cubind
import torch


@functools.cache
def kernel(name):
    return cubind.connect().kernel(name)


@torch.library.custom_op("example::squared_relu", mutates_args=(), device_types="cuda")
def squared_relu(x: torch.Tensor) -> torch.Tensor:
    return kernel("squared_relu")(x=x.contiguous())


@torch.library.custom_op("example::squared_relu_backward", mutates_args=(), device_types="cuda")
def squared_relu_backward(x: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    return kernel("squared_relu_backward")(x=x.contiguous(), dy=dy.contiguous())


squared_relu.register_kernel("cpu")(lambda x: x.relu().square())
squared_relu.register_fake(torch.empty_like)
squared_relu_backward.register_kernel("cpu")(lambda x, dy: 2 * x.relu() * dy)
squared_relu_backward.register_fake(lambda x, dy: torch.empty_like(x))
squared_relu.register_autograd(
    lambda ctx, dy: squared_relu_backward(*ctx.saved_tensors, dy),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)

if __name__ == "__main__":
    x = torch.randn(1000, 77, device="cuda" if torch.cuda.is_available() else "cpu", requires_grad=True)
    (ours,) = torch.autograd.grad(squared_relu(x).sum(), x)
    (theirs,) = torch.autograd.grad(x.relu().square().sum(), x)
    torch.testing.assert_close(ours, theirs)
    print(f"squared_relu and its gradient on {x.device}: as torch's")
