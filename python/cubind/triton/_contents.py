"""What a definition says of the elements of integer tensors, and where the elements themselves may go.
Nothing else of what is in a tensor is looked at."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from typing import Any

from ..errors import InvalidArgumentError
from .definition import MAX_VALUES_BYTES, Contents, element_bytes

_BINS = 16
_SAMPLED = 1 << 20  # elements that the histogram is of, at most
_INTEGER = re.compile(r"i\d+|u1|u8")  # torch cannot compare others
_VARIABLE = "CUBIND_TRITON_CONTENTS"
_MODES = ("", "0", "1")


def may_go_to(address: str) -> bool:
    """Whether elements may go to the daemon at an address, or, for "", into a file: to a Unix socket, unless
    CUBIND_TRITON_CONTENTS=1 says everywhere, or 0 nowhere. Raises InvalidArgumentError for another value."""
    mode = os.environ.get(_VARIABLE, "").strip()
    if mode not in _MODES:
        raise InvalidArgumentError(f'"{mode}" is neither 0 nor 1', _VARIABLE)
    return mode == "1" or (mode == "" and address.startswith("unix:"))


def contents_of(tensor: Any, type_: str) -> Contents | None:
    """None for tensors of other types, empty ones, and ones that are not torch's."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(tensor, torch.Tensor) or not _INTEGER.fullmatch(type_):
        return None
    if tensor.numel() == 0:
        return None
    if tensor.dtype == torch.bool:
        tensor = tensor.view(torch.uint8)
    least, most = (int(end) for end in torch.aminmax(tensor))
    sample = tensor.reshape(-1)[:: max(1, tensor.numel() // _SAMPLED)].double()
    counts = torch.histc(sample, _BINS, float(least), float(most)) if least < most else None
    histogram = (sample.numel(),) if counts is None else tuple(int(count) for count in counts.tolist())
    ascending = bool((sample[1:] >= sample[:-1]).all())
    return Contents(least, most, ascending, histogram, _values_of(tensor, type_))


def _values_of(tensor: Any, type_: str) -> bytes | None:
    """The elements of a small contiguous tensor, unless they may go nowhere. Their shapes and types alone
    decide otherwise, so that all processes that make the same calls ask for the same kernel."""
    size = tensor.numel() * tensor.element_size()
    if size > MAX_VALUES_BYTES or not tensor.is_contiguous() or tensor.element_size() != element_bytes(type_):
        return None
    if not may_go_to("unix:"):
        return None
    held = tensor.detach().cpu()  # alive until it is copied
    return ctypes.string_at(held.data_ptr(), size)
