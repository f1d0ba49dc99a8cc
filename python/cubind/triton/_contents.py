"""What a definition says of the elements of integer tensors. Nothing else of what is in a tensor is looked
at."""

from __future__ import annotations

import re
import sys
from typing import Any

from .definition import Contents

_BINS = 16
_SAMPLED = 1 << 20  # elements that the histogram is of, at most
_INTEGER = re.compile(r"i\d+|u1|u8")  # torch cannot compare others


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
    return Contents(least, most, ascending, histogram)
