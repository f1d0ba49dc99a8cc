"""cubind's kernels as PyTorch operators and modules.

import cubind.torch
cubind.torch.replace(model)
"""

from __future__ import annotations

from ..client import Client
from ._activation import geglu, gelu, silu, swiglu
from ._add_rms_norm import add_rms_norm
from ._attention import scaled_dot_product_attention
from ._cross_entropy import cross_entropy
from ._grouped_mm import grouped_mm
from ._layer_norm import LayerNorm, layer_norm
from ._layer_norm_linear import layer_norm_linear
from ._linear import Linear, linear
from ._linear_cross_entropy import linear_cross_entropy
from ._operator import asker, operators
from ._packed_attention import varlen_attention
from ._replace import Replacement, replace
from ._report import report
from ._rms_norm import RMSNorm, rms_norm
from ._rotary import rotary
from ._scaled_grouped_mm import scaled_grouped_mm
from ._scaled_mm import scaled_mm
from ._softmax import softmax
from ._steps import forget_missing, step, wait
from ._tune import tune
from ._variants import settings
from ._weighted_sum import weighted_sum

__all__ = [
    "LayerNorm",
    "Linear",
    "RMSNorm",
    "Replacement",
    "add_rms_norm",
    "cross_entropy",
    "geglu",
    "gelu",
    "grouped_mm",
    "layer_norm",
    "layer_norm_linear",
    "linear",
    "linear_cross_entropy",
    "never_slower",
    "replace",
    "report",
    "rms_norm",
    "rotary",
    "scaled_dot_product_attention",
    "scaled_grouped_mm",
    "scaled_mm",
    "silu",
    "softmax",
    "step",
    "strict",
    "swiglu",
    "tune",
    "use",
    "varlen_attention",
    "wait",
    "weighted_sum",
]


def strict(on: bool = True) -> None:
    """Raise CubindError when a kernel is missing, instead of using torch's own function.

    A call then waits for the daemon's answer, up to the client's timeout. The default is True in a job of
    several ranks (WORLD_SIZE above 1), which must not diverge silently, else False.

    on: False uses torch's own function again.
    """
    settings.strict = on
    forget_missing()


def never_slower(on: bool = True) -> None:
    """Call torch's own function where it is known to be faster than cubind's kernel. This is the default.

    tune() and `python -m cubind.torch compare` measure both and tell the daemon. What counts is a comparison
    with this very build of torch, whose whole 95 % interval says that torch is faster, by more than 1 %.

    on: False uses the kernels.
    """
    settings.never_slower = on
    for operator in operators():
        operator.retell()


def use(client: Client | None) -> None:
    """Ask this client's daemon for kernels.

    The default is cubind.connect(), when the first kernel is needed. Kernels in use stay until step() or
    wait().

    client: as cubind.connect() makes one; None: the default again.
    """
    settings.use(client)
    asker.start_anew()
