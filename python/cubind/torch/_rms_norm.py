"""RMSNorm: cubind::rms_norm and cubind::rms_norm_backward."""

from __future__ import annotations

from typing import Any

import torch
from torch.compiler import is_compiling, is_dynamo_compiling
from torch.nn import functional

from .. import _torch_private as private
from .._switch import IS_OFF
from ._dispatch import Dispatched, Gradients, applies, contiguous_like, is_direct, library, stream_of, wide
from ._dtensor import are_distributed, run_locally
from ._operator import Need, Operator, is_there
from ._variants import TYPES, has_kernel

_forward = Operator("rmsnorm_forward", ("N", "D"), ("x", "w", "y", "eps"))
_backward = Operator("rmsnorm_backward", ("N", "D"), ("x", "w", "dy", "rstd", "dx", "dw"))
_call = _forward.call(("N* D", "D"), ("N* D",), known=("D",), numbers=1)
_backward_call = _backward.call(("N* D", "D", "N* D", "N* f32"), ("N* D", "D"), known=("D",))
_DEFAULT_EPS = {dtype: torch.finfo(dtype).eps for dtype in TYPES}


def _formula(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return functional.rms_norm(x, weight.shape, weight, eps)


def _backward_formula(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    return backward_formula(dy, x, weight, torch.rsqrt(wide(x).square().mean(-1) + eps))


def backward_formula(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, rstd: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
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
    return dx.to(x.dtype), dw.to(weight.dtype)


# The backward pass reads the rows' scales once more: the forward kernel does not store them.
def _forward_cuda(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    y = _call.launch(x, weight, eps)
    if y is not None and y is not NotImplemented:
        return y
    if y is None and has_kernel(x, weight):
        x, weight = x.contiguous(), weight.contiguous()
        y = torch.empty_like(x)
        features, device = weight.shape[0], x.get_device()
        key, dims = (x.dtype, device, (), (features,)), (x.numel() // features, features)
        if _forward.launch(key, dims, stream_of(device), (x, weight, y, eps)):
            return y
    return _formula(x, weight, eps)


def _backward_cuda(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    if not (has_kernel(x, weight) and dy.dtype == x.dtype):
        return _backward_formula(dy, x, weight, eps)
    x = x.contiguous()
    norm = torch.linalg.vector_norm(x, dim=-1, dtype=torch.float32)
    rstd = norm.square_().div_(weight.shape[0]).add_(eps).rsqrt_()
    gradients = launch_backward(dy, x, weight, rstd)
    return gradients if gradients is not None else backward_formula(dy, x, weight, rstd)


def launch_backward(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, rstd: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """dx and dw by the kernel; None if there is none. rstd: one for each row, in float32."""
    gradients = _backward_call.launch(x, weight, dy, rstd)
    if gradients is not None:
        return gradients if gradients is not NotImplemented else None
    if not (has_kernel(x, weight) and dy.dtype == x.dtype):
        return None
    dy, x, weight, rstd = dy.contiguous(), x.contiguous(), weight.contiguous(), rstd.contiguous()
    dx, dw = torch.empty_like(x), torch.empty_like(weight)
    features, device = weight.shape[0], x.get_device()
    key, dims = (x.dtype, device, (), (features,)), (x.numel() // features, features)
    launched = _backward.launch(key, dims, stream_of(device), (x, weight, dy, rstd, dx, dw))
    return (dx, dw) if launched else None


def backward_need(x: torch.Tensor, features: int) -> Need:
    """The kernel of launch_backward()."""
    return _backward, (x.dtype, x.get_device(), (), (features,)), (x.numel() // features, features)


def _fake(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return contiguous_like(x)


def _backward_fake(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    return contiguous_like(x), contiguous_like(weight)


def _gradients(ctx: Any, dy: torch.Tensor) -> Gradients:
    x, weight = ctx.saved_tensors
    dx, dw = _backward_operator(dy, x, weight, *ctx.others)
    return dx if ctx.needs_input_grad[0] else None, dw if ctx.needs_input_grad[1] else None


# Further rows of x cost nothing; a batch of weights is another formula.
def _vmap(info: Any, in_dims: tuple[Any, ...], x: torch.Tensor, weight: torch.Tensor, eps: float) -> Any:
    x_dim, weight_dim, _ = in_dims
    if weight_dim is None:
        return torch.ops.cubind.rms_norm(x.movedim(x_dim, 0), weight, eps), 0
    x = x.movedim(x_dim, 0) if x_dim is not None else x.expand(info.batch_size, *x.shape)
    weight = weight.movedim(weight_dim, 0)
    shape = (info.batch_size, *(1,) * (x.dim() - 2), weight.shape[-1])
    return functional.rms_norm(x, weight.shape[-1:], None, eps) * weight.reshape(shape), 0


_operator = Dispatched(
    "rms_norm(Tensor x, Tensor weight, float eps) -> Tensor", _forward_cuda, _formula, _fake, tensors=2
)
_operator.differentiate((0, 1), _gradients, (_call, None))
_backward_operator = Dispatched(
    "rms_norm_backward(Tensor dy, Tensor x, Tensor weight, float eps) -> (Tensor, Tensor)",
    _backward_cuda,
    _backward_formula,
    _backward_fake,
    tensors=3,
)
_backward_operator.differentiate_by_formula()
torch.library.register_vmap("cubind::rms_norm", _vmap, lib=library)


def rms_norm(
    input: torch.Tensor,
    normalized_shape: list[int] | tuple[int, ...] | torch.Size,
    weight: torch.Tensor | None = None,
    eps: float | None = None,
) -> torch.Tensor:
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
    y: Any = NotImplemented if IS_OFF else None
    if y is None and not is_dynamo_compiling():
        given = _DEFAULT_EPS.get(input.dtype) if eps is None and weight is not None else eps
        y = _call.direct(normalized_shape, input, weight, given)
    if y is None:
        y = _longer(input, normalized_shape, weight, eps)
    return y if y is not NotImplemented else functional.rms_norm(input, normalized_shape, weight, eps)


# NotImplemented: torch's own function takes its place.
def _longer(
    input: torch.Tensor,
    normalized_shape: list[int] | tuple[int, ...] | torch.Size,
    weight: torch.Tensor | None,
    eps: float | None,
) -> Any:
    if (
        weight is None
        or len(normalized_shape) != 1
        or weight.shape != tuple(normalized_shape)
        or input.shape[-1:] != weight.shape
    ):
        return NotImplemented
    direct = is_direct(input, weight)
    if not direct and not applies(input, weight):
        if not are_distributed(input, weight):
            return NotImplemented
        return run_locally(
            "rms_norm", lambda x, w: rms_norm(x, w.shape, w, eps), {"input": input}, 1, {"weight": weight}
        )
    needs = input.requires_grad or weight.requires_grad
    if not (is_compiling() or _is_there(input, weight, needs)):
        return NotImplemented
    used_eps = torch.finfo(input.dtype).eps if eps is None else eps
    if not direct:
        return _operator(input, weight, used_eps)
    return _operator.direct(needs, input, weight, used_eps)


def _is_there(x: torch.Tensor, weight: torch.Tensor, needs_gradients: bool) -> bool:
    if not has_kernel(x, weight):
        return False
    features = weight.shape[0]
    key, dims = (x.dtype, x.get_device(), (), (features,)), (x.numel() // features, features)
    return is_there(needs_gradients, (_forward, key, dims), backward_need(x, features))


class RMSNorm(torch.nn.RMSNorm):
    """torch.nn.RMSNorm by rms_norm(): the same arguments, parameters and state dict. In a compiled graph it
    is torch's, which the compiler fuses with its neighbours."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: [..., D]."""
        if is_compiling():
            return super().forward(x)
        return rms_norm(x, self.normalized_shape, self.weight, self.eps)
