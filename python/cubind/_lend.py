"""The GPU that this process lends to the daemon's agent while a call waits."""

from __future__ import annotations

import sys
from typing import Any

from . import _core, _wire


def lent_gpu(lend: bool | None, gpu: Any = None) -> Any:
    """The v1.LentGpu of a request; None: nothing is lent. Everything that this process has launched on the
    GPU has ended then.

    lend: False: never. None and True: where the process has a context on the GPU. gpu: the device's number;
        None: the current one.
    """
    torch = sys.modules.get("torch")
    in_use = torch is not None and hasattr(torch, "cuda") and torch.cuda.is_initialized()
    if lend is False or (in_use and torch.cuda.is_current_stream_capturing()):
        return None
    ordinal = gpu if isinstance(gpu, int) else None
    held = _core.synchronized(-1 if ordinal is None else ordinal)
    if held is None:
        return None
    memory = torch.cuda.memory_reserved(ordinal) if in_use else 0
    return _wire.messages().LentGpu(**held, memory_bytes=memory)
