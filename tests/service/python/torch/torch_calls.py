"""For tests of operators' calls: each call of a kernel, and what it launches. Import torch_found first."""

import torch
from cubind.torch import (
    _add_rms_norm,
    _attention,
    _layer_norm,
    _layer_norm_linear,
    _linear,
    _rms_norm,
    _softmax,
    _weighted_sum,
)
from torch.utils._python_dispatch import TorchDispatchMode

SIZE = 4096


def ones(*shape, dtype=torch.bfloat16, **options):
    return torch.ones(*shape, dtype=dtype, **options)


# For each call of a kernel: its inputs, and by what the operator calls it.
def calls():
    x, w, rows = ones(SIZE, SIZE), ones(SIZE), torch.ones(SIZE)
    q, k, lse = ones(1, 32, 128, 128), ones(1, 8, 128, 128), torch.ones(1, 32, 128)
    tall = ones(16, SIZE)
    turned = _linear._calls[False, True, False], _linear._calls[False, True, True]
    return {
        "rms_norm": (_rms_norm._call, (x, w, 1e-6), lambda: _rms_norm._forward_cuda(x, w, 1e-6)),
        "rms_norm_backward": (
            _rms_norm._backward_call, (x, w, x, rows), lambda: _rms_norm._backward_cuda(x, x, w, 1e-6)
        ),
        "layer_norm": (_layer_norm._call, (x, w, w, 1e-5), lambda: _layer_norm._forward_cuda(x, w, w, 1e-5)),
        "layer_norm_backward": (
            _layer_norm._backward_call, (x, w, x, rows, rows), lambda: _layer_norm._backward_cuda(x, x, w, rows, rows)
        ),
        "softmax": (_softmax._call, (x,), lambda: _softmax._forward_cuda(x)),
        "softmax_backward": (_softmax._backward_call, (x, x), lambda: _softmax._backward_cuda(x, x)),
        "linear": (turned[0], (tall, x), lambda: _linear._cuda(tall, x, None, False, True)),
        "linear with a bias": (turned[1], (tall, x, w), lambda: _linear._cuda(tall, x, w, False, True)),
        "weighted_sum": (_weighted_sum._call, (x, w), lambda: _weighted_sum._forward_cuda(x, w)),
        "weighted_sum_backward": (
            _weighted_sum._backward_call, (x, w, w), lambda: _weighted_sum._backward_cuda(w, x, w)
        ),
        "add_rms_norm": (
            _add_rms_norm._call, (x, x, w, 1e-6), lambda: _add_rms_norm._forward_cuda(x, x, w, 1e-6)
        ),
        "add_rms_norm without gradients": (
            _add_rms_norm._bare_call, (x, x, w, 1e-6), lambda: _add_rms_norm._bare_cuda(x, x, w, 1e-6)
        ),
        "layer_norm_linear": (
            _layer_norm_linear._calls[0], (tall, w, w, x, 1e-5), lambda: _layer_norm_linear._cuda(tall, w, w, x, None, 1e-5)
        ),
        "layer_norm_linear with a bias": (
            _layer_norm_linear._calls[1], (tall, w, w, x, w, 1e-5), lambda: _layer_norm_linear._cuda(tall, w, w, x, w, 1e-5)
        ),
        "attention": (
            _attention._calls[True], (q, k, k, 0.1), lambda: _attention._forward_cuda(q, k, k, True, 0.1)
        ),
        "attention_backward": (
            _attention._backward_calls[True],
            (q, k, k, q, q, lse, 0.1),
            lambda: _attention._backward_cuda(q, q, k, k, q, lse, True, 0.1),
        ),
    }  # fmt: skip


def several(outputs):
    return outputs if isinstance(outputs, tuple) else (outputs,)


def described(outputs):
    return [(tensor.shape, tensor.dtype, tensor.is_contiguous()) for tensor in several(outputs)]


def _is_address(value):
    """Whether it is an address of a tensor, not a size or the bits of a float32. Debian's Python has its heap
    below 4 GiB."""
    return value >= 1 << 32 or (value >= 1 << 20 and value % 64 == 0)


def placed(launch, tensors):
    """The launch, with the numbers of those tensors instead of their addresses, and nothing for another
    one's."""
    numbers = {tensor.data_ptr(): number for number, tensor in enumerate(tensors)}
    parameters = [numbers.get(value, None if _is_address(value) else value) for value in launch.parameters]
    return list(launch.grid), list(launch.block), launch.shared_bytes, parameters


class Quiet(TorchDispatchMode):
    """Looks on and does nothing."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))
