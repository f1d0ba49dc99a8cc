"""What the extension asks torch for when it calls an operator, handed to it once."""

from __future__ import annotations

from typing import Any

from .. import _core, _torch_access

PLAIN = _torch_access.PLAIN


def fields() -> dict[str, Any]:
    """What _core.Torch is made of: see python/extension/torch_access.hpp."""
    return _torch_access.fields(autocast=True)  # which has rules of its own for torch's operators


access = _core.Torch(fields())
