"""cubind's kernels as PyTorch operators and modules.

import cubind.torch
cubind.torch.replace(model)
"""

from __future__ import annotations

from ..client import Client
from ._add_rms_norm import add_rms_norm
from ._attention import scaled_dot_product_attention
from ._layer_norm import LayerNorm, layer_norm
from ._layer_norm_linear import layer_norm_linear
from ._linear import Linear, linear
from ._replace import Replacement, replace
from ._rms_norm import RMSNorm, rms_norm
from ._softmax import softmax
from ._variants import settings, step
from ._weighted_sum import weighted_sum

__all__ = [
    "LayerNorm",
    "Linear",
    "RMSNorm",
    "Replacement",
    "add_rms_norm",
    "layer_norm",
    "layer_norm_linear",
    "linear",
    "replace",
    "rms_norm",
    "scaled_dot_product_attention",
    "softmax",
    "step",
    "strict",
    "use",
    "weighted_sum",
]


def strict(on: bool = True) -> None:
    """on: whether a kernel that is not there raises CubindError, where otherwise torch's formula takes its
    place with one warning.
    The default: in a job of several ranks (WORLD_SIZE above 1), which must not diverge in silence."""
    settings.strict = on


def use(client: Client) -> None:
    """client: by which the operators ask a daemon. The default: cubind.connect(), when the first kernel is
    needed."""
    settings.client = client
