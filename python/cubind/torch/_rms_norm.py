"""RMSNorm as operators of the dispatcher: cubind::rms_norm and cubind::rms_norm_backward."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional

from ._variants import Operator

_TYPES = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32"}
_HALF = (torch.bfloat16, torch.float16)

_forward = Operator("rmsnorm_forward", ("N", "D"), 1, ("x", "w", "y", "eps"))
_backward = Operator("rmsnorm_backward", ("N", "D"), 1, ("x", "w", "dy", "rstd", "dx", "dw", "partial_w"))
# From a device's ordinal to its current stream; a build of torch without CUDA has none, and calls none.
_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)

_library = torch.library.Library("cubind", "DEF")
_library.define("rms_norm(Tensor x, Tensor weight, float eps) -> Tensor")
_library.define("rms_norm_backward(Tensor dy, Tensor x, Tensor weight, float eps) -> (Tensor, Tensor)")


def _formula(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return torch.nn.functional.rms_norm(x, weight.shape, weight, eps)


def _backward_formula(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    wide, grad = (t.float() if t.dtype in _HALF else t for t in (x, dy))
    rstd = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    normed, scaled = wide * rstd, grad * weight
    dx = rstd * (scaled - normed * (scaled * normed).mean(-1, keepdim=True))
    dw = (grad * normed).reshape(-1, weight.numel()).sum(0)
    return dx.to(x.dtype), dw.to(weight.dtype)


def _has_kernel(x: torch.Tensor, weight: torch.Tensor) -> bool:
    return x.dtype in _TYPES and weight.dtype == x.dtype and x.device == weight.device and x.numel() > 0


def _forward_cuda(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    if _has_kernel(x, weight):
        x, weight = x.contiguous(), weight.contiguous()
        y = torch.empty_like(x)
        features, device = weight.numel(), x.get_device()
        dims = (x.numel() // features, features)
        if _forward.launch(_TYPES[x.dtype], device, dims, _stream(device), (x, weight, y, eps)):
            return y
    return _formula(x, weight, eps)


# The forward kernel does not store the rows' scales: one more read of x gives them.
def _backward_cuda(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    if _has_kernel(x, weight) and dy.dtype == x.dtype:
        dtype, features, device = _TYPES[x.dtype], weight.numel(), x.get_device()
        dims = (x.numel() // features, features)
        variant = _backward.find(dtype, device, dims)
        if variant is not None:
            dy, x, weight = dy.contiguous(), x.contiguous(), weight.contiguous()
            norm = torch.linalg.vector_norm(x, dim=-1, dtype=torch.float32)
            rstd = torch.rsqrt(norm.square() / features + eps)
            dx, dw = torch.empty_like(x), torch.empty_like(weight)
            scratch = x.new_empty(_scratch_bytes(variant, dims) // 4, dtype=torch.float32)
            if _backward.launch(dtype, device, dims, _stream(device), (x, weight, dy, rstd, dx, dw, scratch)):
                return dx, dw
    return _backward_formula(dy, x, weight, eps)


def _scratch_bytes(variant: Any, dims: tuple[int, ...]) -> int:
    extents = variant.extents(dims)
    names = [parameter[0] for parameter in variant.kernel.parameters()]
    return int(extents[names.index("partial_w")])


_library.impl("rms_norm", _forward_cuda, "CUDA")
_library.impl("rms_norm", _formula, "CPU")
_library.impl("rms_norm_backward", _backward_cuda, "CUDA")
_library.impl("rms_norm_backward", _backward_formula, "CPU")


@torch.library.register_fake("cubind::rms_norm", lib=_library)
def _(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@torch.library.register_fake("cubind::rms_norm_backward", lib=_library)
def _(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    like = torch.contiguous_format
    return torch.empty_like(x, memory_format=like), torch.empty_like(weight, memory_format=like)


def _save(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    x, weight, ctx.eps = inputs
    ctx.save_for_backward(x, weight)


def _differentiate(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None, None]:
    x, weight = ctx.saved_tensors
    dx, dw = torch.ops.cubind.rms_norm_backward(dy, x, weight, ctx.eps)
    return dx if ctx.needs_input_grad[0] else None, dw if ctx.needs_input_grad[1] else None, None


torch.library.register_autograd("cubind::rms_norm", _differentiate, setup_context=_save, lib=_library)


# Further rows of x cost nothing; a batch of weights is another formula.
def _vmap(info: Any, in_dims: tuple[Any, ...], x: torch.Tensor, weight: torch.Tensor, eps: float) -> Any:
    x_dim, weight_dim, _ = in_dims
    if weight_dim is None:
        return torch.ops.cubind.rms_norm(x.movedim(x_dim, 0), weight, eps), 0
    x = x.movedim(x_dim, 0) if x_dim is not None else x.expand(info.batch_size, *x.shape)
    weight = weight.movedim(weight_dim, 0)
    shape = (info.batch_size, *(1,) * (x.dim() - 2), weight.shape[-1])
    return torch.nn.functional.rms_norm(x, weight.shape[-1:], None, eps) * weight.reshape(shape), 0


torch.library.register_vmap("cubind::rms_norm", _vmap, lib=_library)


def rms_norm(
    input: torch.Tensor,
    normalized_shape: list[int] | tuple[int, ...] | torch.Size,
    weight: torch.Tensor | None = None,
    eps: float | None = None,
) -> torch.Tensor:
    """torch.nn.functional.rms_norm, by cubind's kernels on a GPU.

    input: [..., D]; bf16, f16 or f32. weight: [D], of the same type. eps: None is torch.finfo(input.dtype).eps.

    torch's own formula is used, without a warning, for what the kernels are not made for: the CPU, another type, several
    normalized dims, no weight, autocast, tensor subclasses (DTensor); and with one warning where no GPU, driver, daemon or
    variant is there. With strict(True) the latter raises CubindError.
    """
    if (
        weight is None
        or not input.is_cuda
        or len(normalized_shape) != 1
        or weight.shape != tuple(normalized_shape)
        or input.shape[-1:] != weight.shape
        or type(input) not in (torch.Tensor, torch.nn.Parameter)
        or torch.is_autocast_enabled("cuda")
    ):
        return torch.nn.functional.rms_norm(input, normalized_shape, weight, eps)
    return torch.ops.cubind.rms_norm(input, weight, torch.finfo(input.dtype).eps if eps is None else eps)


class RMSNorm(torch.nn.RMSNorm):
    """torch.nn.RMSNorm by rms_norm(): the same arguments, parameters and state dict."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: [..., D]."""
        return rms_norm(x, self.normalized_shape, self.weight, self.eps)
