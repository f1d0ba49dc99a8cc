"""What the extension asks torch for, handed to it once. Import this only after torch."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.utils.dlpack import to_dlpack

from . import _core, _torch_private, arrays

# The classes of tensors that are no subclass with a meaning of its own.
PLAIN = (torch.Tensor, torch.nn.Parameter)
DTYPES = {short: getattr(torch, long) for short, long in arrays.TORCH.items()}


def fields(autocast: bool) -> dict[str, Any]:
    """See python/extension/torch_access.hpp. autocast: whether it counts as a watcher."""
    return {
        "exchange": _torch_private.exchange,
        "capsule": lambda tensor: to_dlpack(tensor.detach()),
        "stream_of": _torch_private.stream_of,
        "plain": PLAIN,
        "watchers": _torch_private.watchers(autocast),
        "forward_ad": _torch_private.forward_levels,
        "is_grad_enabled": torch.is_grad_enabled,
        "current_device": _torch_private.current_device,
        "device_count": torch.cuda.device_count,
        "empty_strided": _torch_private.quick_allocation(),
        "dtypes": DTYPES,
    }


@functools.cache
def access() -> _core.Torch | None:
    """For launches of kernels, which autocast has nothing to do with. None if torch shows no tensors to C."""
    return _core.Torch(fields(autocast=False)) if _torch_private.exchange is not None else None
