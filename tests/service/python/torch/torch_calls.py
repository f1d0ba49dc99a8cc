"""For tests of operators' calls: each call of a kernel, and what it launches. Import torch_found first."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch_launches import on_gpu

SIZE = 4096


def ones(*shape, dtype=torch.bfloat16, **options):
    return torch.ones(*shape, dtype=dtype, **options)


def calls():
    """An operator and its inputs each, for run()."""
    x, w, rows = ones(SIZE, SIZE), ones(SIZE), torch.ones(SIZE)
    q, k, lse = ones(1, 32, 128, 128), ones(1, 8, 128, 128), torch.ones(1, 32, 128)
    e4m3 = torch.float8_e4m3fn
    ends = torch.tensor([7, 16], dtype=torch.int32)
    tall, tokens, turns = ones(16, SIZE), ones(2, 32, 4, 128), ones(32, 128)
    target = torch.zeros(SIZE, dtype=torch.int64)
    return {
        "rms_norm": (x, w, 1e-6),
        "rms_norm_backward": (x, x, w, 1e-6),
        "layer_norm": (x, w, w, 1e-5),
        "layer_norm_backward": (x, x, w, rows, rows),
        "softmax": (x,),
        "softmax_backward": (x, x),
        "matmul": (tall, x, None, False, True),
        "matmul with a bias": (tall, x, w, False, True),
        "grouped_mm": (tall, ones(2, SIZE, 128), ends, False),
        "scaled_mm": (tall.to(e4m3), x.to(e4m3), torch.ones(32, 16), torch.ones(32, 32), 2),
        "scaled_grouped_mm": (
            *(tall.to(e4m3), torch.stack([x, x]).to(e4m3), torch.ones(16), torch.ones(2, SIZE), ends),
            4,
        ),
        "scaled_grouped_mm by blocks": (
            *(tall.to(e4m3), torch.stack([x, x]).to(e4m3), torch.ones(32, 16), torch.ones(2, 32, 32), ends),
            2,
        ),
        "weighted_sum": (x, w),
        "weighted_sum_backward": (w, x, w),
        "add_rms_norm": (x, x, w, 1e-6),
        "add_rms_norm_backward": (x, x, x, w, rows),
        "layer_norm_linear": (tall, w, w, x, None, 1e-5),
        "layer_norm_linear with a bias": (tall, w, w, x, w, 1e-5),
        "attention": (q, k, k, True, 0, 0, 0, 0.1),
        "attention_backward": (q, q, k, k, q, lse, True, 0, 0, 0, 0.1),
        "activation": (x, 1),
        "activation_backward": (x, x, 3),
        "gated_activation": (x, x, 2),
        "gated_activation_backward": (x, x, x, 2),
        "rotary": (tokens, tokens, turns, turns, False),
        "rotary back": (tokens, tokens, turns, turns, True),
        "cross_entropy": (x, target, -100),
        "cross_entropy_backward": (rows, x, target, rows, -100),
    }


def run(name, inputs):
    return on_gpu(name.partition(" ")[0], *inputs)


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
