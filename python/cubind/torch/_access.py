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


# What compiled graphs allocate by: in half of the time of torch.empty().
def _quick_allocation() -> tuple[Any, Any] | None:
    guards = torch._C._dynamo.guards
    found = tuple(getattr(guards, f"_empty_strided_{name}", None) for name in ("cpu", "cuda"))
    return found if all(found) else None


def fields() -> dict[str, Any]:
    """What _core.Torch is made of: see python/extension/torch_access.hpp."""
    return {
        # Without it, which torch has from 2.10 on, no call is direct.
        "exchange": getattr(torch.Tensor, "__dlpack_c_exchange_api__", None),
        "plain": PLAIN,
        "watchers": _watchers,
        "forward_ad": forward_ad,
        "is_grad_enabled": torch.is_grad_enabled,
        "current_device": getattr(torch._C, "_cuda_getDevice", lambda: -1),
        "device_count": torch.cuda.device_count,
        "empty_strided": _quick_allocation(),
        "dtypes": {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "u8": torch.uint8},
    }


access = _core.Torch(fields())
