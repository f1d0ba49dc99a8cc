"""LayerNorm: cubind::layer_norm and cubind::layer_norm_backward."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from .. import _torch_private as private
from ._choices import is_torchs
from ._dispatch import Dispatched
from ._operator import Operator
from ._tensors import HALF, Three, wide

_DIMS = ("N", "D")
_ROW = "N* f32"  # the statistics
_call = Operator("layernorm_forward", _DIMS).call(
    {"x": "N* D", "w": "D", "b": "D"}, {"y": "N* D", "mean": _ROW, "rstd": _ROW}, {"eps": 1e-6}
)
backward_call = Operator("layernorm_backward", _DIMS).call(
    {"dy": "N* D", "x": "N* D", "w": "D", "mean": _ROW, "rstd": _ROW}, {"dx": "N* D", "dw": "D", "db": "D"}
)


# On the CPU torch keeps the statistics of narrow types in the narrow type.
def _has_statistics(x: Tensor) -> bool:
    return x.is_cuda or x.dtype not in HALF


def _formula(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Three:
    if private.layer_norm is not None and _has_statistics(x) and x.dtype == weight.dtype == bias.dtype:
        y, mean, rstd = private.layer_norm(x.contiguous(), weight.shape, weight, bias, eps)
        return y, mean.squeeze(-1), rstd.squeeze(-1)
    y = functional.layer_norm(x, weight.shape, weight, bias, eps)
    mean = wide(x).mean(-1)
    variance = (wide(x) - mean.unsqueeze(-1)).square().mean(-1)
    return y.contiguous(), mean, torch.rsqrt(variance + eps)


def _backward_formula(dy: Tensor, x: Tensor, weight: Tensor, mean: Tensor, rstd: Tensor) -> Three:
    if private.layer_norm_backward is not None and _has_statistics(x) and x.dtype == weight.dtype == dy.dtype:
        given = (dy.contiguous(), x.contiguous(), weight.shape, mean.unsqueeze(-1), rstd.unsqueeze(-1))
        # The bias is not read.
        dx, dw, db = private.layer_norm_backward(*given, weight, weight, [True, True, True])
        return dx, dw, db
    grad, scale = wide(dy), rstd.unsqueeze(-1)
    normed, scaled = (wide(x) - mean.unsqueeze(-1)) * scale, grad * weight
    share = (scaled * normed).mean(-1, keepdim=True)
    dx = scale * (scaled - scaled.mean(-1, keepdim=True) - normed * share)
    rows = grad.reshape(-1, weight.numel())
    dw = (rows * normed.reshape(-1, weight.numel())).sum(0)
    return dx.to(x.dtype).contiguous(), dw.to(weight.dtype), rows.sum(0).to(weight.dtype)


_backward_operator = Dispatched(
    "layer_norm_backward(Tensor dy, Tensor x, Tensor weight, Tensor mean, Tensor rstd) -> (Tensor, Tensor, Tensor)",
    (backward_call,),
    _backward_formula,
)
_operator = Dispatched(
    "layer_norm(Tensor x, Tensor weight, Tensor bias, float eps) -> (Tensor, Tensor, Tensor)",
    (_call,),
    _formula,
    distributed=("layer_norm", "input", "weight", "bias"),
)
_operator.differentiate((0, 1, 4, 5), _backward_operator)


def layer_norm(
    input: Tensor,
    normalized_shape: list[int] | tuple[int, ...] | torch.Size,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """torch.nn.functional.layer_norm, by cubind's kernels on a GPU.

    input: [..., D]; bf16, f16 or f32. normalized_shape: [D]. weight, bias: [D], of input's type. eps: added
        to the variance.

    Torch's own function is used as rms_norm() says, and without a weight or a bias. DTensors are accepted.
    """
    y = _call(normalized_shape, input, weight, bias, eps)
    return y if y is not NotImplemented else functional.layer_norm(input, normalized_shape, weight, bias, eps)


class LayerNorm(torch.nn.LayerNorm):
    """torch.nn.LayerNorm by layer_norm(): the same arguments, parameters and state dict. In a compiled graph
    it is torch's, which the compiler fuses with its neighbours, unless tune() has found it faster."""

    _kinds = ("norm",)
    _in_graph: tuple[str, ...] = ()

    def forward(self, input: Tensor) -> Tensor:
        """input: [..., D]."""
        if is_torchs(self, "norm"):
            return super().forward(input)
        return layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)
