"""RMSNorm: cubind::rms_norm and cubind::rms_norm_backward."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .. import _torch_private as private
from ._choices import is_torchs
from ._dispatch import Dispatched, library
from ._operator import Operator
from ._tensors import Two, contiguous_like, wide

_DIMS = ("N", "D")
_call = Operator("rmsnorm_forward", _DIMS).call({"x": "N* D", "w": "D"}, {"y": "N* D"}, {"eps": 1e-6})
backward_call = Operator("rmsnorm_backward", _DIMS).call(
    {"x": "N* D", "w": "D", "dy": "N* D", "rstd": "N* f32"}, {"dx": "N* D", "dw": "D"}
)
_EPS = {
    dtype: torch.finfo(dtype).eps for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64)
}


def _formula(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return functional.rms_norm(x, weight.shape, weight, eps)


def _backward_formula(dy: Tensor, x: Tensor, weight: Tensor, eps: float) -> Two:
    return backward_formula(dy, x, weight, torch.rsqrt(wide(x).square().mean(-1) + eps))


def backward_formula(dy: Tensor, x: Tensor, weight: Tensor, rstd: Tensor) -> Two:
    """dx and dw as torch computes them. rstd: one for each row."""
    known = private.rms_norm_backward if not torch.is_grad_enabled() else None  # it has no derivative
    if x.is_cuda and known is not None and x.dtype == weight.dtype == dy.dtype:
        given = (dy.contiguous(), x.contiguous(), weight.shape, rstd.unsqueeze(-1))
        dx, dw = known(*given, weight, [True, True])
        return dx, dw
    grad, scale = wide(dy), rstd.unsqueeze(-1)
    normed, scaled = wide(x) * scale, grad * weight
    dx = scale * (scaled - normed * (scaled * normed).mean(-1, keepdim=True))
    dw = (grad * normed).reshape(-1, weight.numel()).sum(0)
    return dx.to(x.dtype).contiguous(), dw.to(weight.dtype)


# The backward pass reads the rows' scales once more: the forward kernel does not store them.
def _backward_cuda(dy: Tensor, x: Tensor, weight: Tensor, eps: float) -> Two:
    if _call.need(x, weight) is None:
        return _backward_formula(dy, x, weight, eps)
    norm = torch.linalg.vector_norm(x, dim=-1, dtype=torch.float32)
    rstd = norm.square_().div_(weight.shape[0]).add_(eps).rsqrt_()
    return backward_call.run(x, weight, dy, rstd) or backward_formula(dy, x, weight, rstd)


# Further rows of x cost nothing; a batch of weights is another formula.
def _vmap(info: Any, in_dims: tuple[Any, ...], x: Tensor, weight: Tensor, eps: float) -> Any:
    x_dim, weight_dim, _ = in_dims
    if weight_dim is None:
        return torch.ops.cubind.rms_norm(x.movedim(x_dim, 0), weight, eps), 0
    x = x.movedim(x_dim, 0) if x_dim is not None else x.expand(info.batch_size, *x.shape)
    weight = weight.movedim(weight_dim, 0)
    shape = (info.batch_size, *(1,) * (x.dim() - 2), weight.shape[-1])
    return functional.rms_norm(x, weight.shape[-1:], None, eps) * weight.reshape(shape), 0


_backward_operator = Dispatched(
    "rms_norm_backward(Tensor dy, Tensor x, Tensor weight, float eps) -> (Tensor, Tensor)",
    (),
    _backward_formula,
    cuda=_backward_cuda,
    fake=lambda dy, x, weight, eps: (contiguous_like(x), contiguous_like(weight)),
)
_backward_operator.differentiate_by_formula()
_operator = Dispatched(
    "rms_norm(Tensor x, Tensor weight, float eps) -> Tensor",
    (_call,),
    _formula,
    distributed=("rms_norm", "input", "weight"),
)
_operator.differentiate((0, 1), _backward_operator, ahead=lambda need, _: [backward_call.at(need)])
torch.library.register_vmap("cubind::rms_norm", _vmap, lib=library)


def rms_norm(
    input: Tensor,
    normalized_shape: list[int] | tuple[int, ...] | torch.Size,
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """torch.nn.functional.rms_norm, by cubind's kernels on a GPU.

    input: [..., D]; bf16, f16 or f32. normalized_shape: [D]. weight: [D], of input's type. eps: None is
        torch.finfo(input.dtype).eps.

    Torch's own function is used, with its gradients, for what the kernels are not made for: the CPU, another
    type, several normalized dims, no weight, autocast, tensor subclasses; while the kernel is not ready yet;
    and with one warning if there is no GPU, driver, daemon or variant. With strict(True) the call waits for
    the kernel, and raises CubindError if there is none.

    A DTensor gives one with its placements: each rank runs on its own rows. Raises InvalidArgumentError if
    the last dim or a weight is sharded, and for tensors of several GPUs.
    """
    y = _call(normalized_shape, input, weight, _EPS.get(input.dtype) if eps is None else eps)
    return y if y is not NotImplemented else functional.rms_norm(input, normalized_shape, weight, eps)


class RMSNorm(torch.nn.RMSNorm):
    """torch.nn.RMSNorm by rms_norm(): the same arguments, parameters and state dict. In a compiled graph it
    is torch's, which the compiler fuses with its neighbours, unless tune() has found it faster."""

    _kinds = ("norm",)
    _in_graph: tuple[str, ...] = ()

    def forward(self, x: Tensor) -> Tensor:
        """x: [..., D]."""
        if is_torchs(self, "norm"):
            return super().forward(x)
        return rms_norm(x, self.normalized_shape, self.weight, self.eps)
