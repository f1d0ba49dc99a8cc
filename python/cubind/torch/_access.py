"""What the extension asks torch for when it calls a kernel, handed to it once."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import forward_ad

from .. import _core

PLAIN = (torch.Tensor, torch.nn.Parameter)

# Who else looks on at an operator; each takes a tenth of a microsecond or less.
_watchers: tuple[Any, ...] = (
    torch._C._len_torch_dispatch_stack,
    torch._C._are_functorch_transforms_active,
    torch._C._is_any_autocast_enabled,
    torch._C._is_tracing,
)

# Without the exchange interface, which torch has from 2.10 on, no call is direct.
access = _core.Torch(
    {
        "exchange": getattr(torch.Tensor, "__dlpack_c_exchange_api__", None),
        "plain": PLAIN,
        "watchers": _watchers,
        "forward_ad": forward_ad,
        "is_grad_enabled": torch.is_grad_enabled,
        "empty_like": torch.empty_like,
        "float32": torch.float32,
        "uint8": torch.uint8,
    }
)
