"""The current GPU of the calling thread."""

from __future__ import annotations

import contextlib
from typing import Any

import torch


def is_capturing() -> bool:
    """Whether this thread captures a CUDA graph: then no cubin can be loaded."""
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


def on_device(device: int) -> contextlib.AbstractContextManager[Any]:
    """The GPU as the current one, where there are any."""
    return torch.cuda.device(device) if torch.cuda.is_available() else contextlib.nullcontext()
