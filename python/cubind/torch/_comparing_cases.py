"""Calls of the operators on inputs that are made for a problem: they are compared with torch's functions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from ._attention import FORWARD, scaled_dot_product_attention
from ._cross_entropy import cross_entropy
from ._grouped_mm import grouped_mm
from ._linear_cross_entropy import judge_cuda
from ._rotary import rotary
from ._scaled_grouped_mm import scaled_grouped_mm
from ._scaled_mm import BY_BLOCK, BY_ROW, EXACT, scaled_mm
from ._variants import Need

_EPS = 1e-6
_IGNORED = -100

Dims = tuple[int, ...]
Run = Callable[[], object]


@dataclasses.dataclass(frozen=True)
class Case:
    """ours: the operator's call, which launches the kernel if it is there, else torch's function. theirs: the
    call of torch's function."""

    ours: Run
    theirs: Run


def has_case(need: Need) -> bool:
    """Whether each version of torch has a function of its own. None has one for attention with windows, a
    soft-cap or packed sequences, for groups of FP8 with scales by block, or for those scales on the CPU."""
    operator, key, _ = need
    if operator.name == "scaled_grouped_mm":
        return key[1] >= 0 and key[2] != (BY_BLOCK,)
    if operator.name == "scaled_mm":
        return key[1] >= 0 or key[2] != (BY_BLOCK,)
    return not operator.name.startswith("flash_attention") or (
        "packed" not in operator.name and not any(key[2][1:])
    )


def case_of(need: Need) -> Case:
    """On the current GPU. Where nothing is said, torch's function is the operator's formula."""
    operator, key, dims = need
    inputs = _Inputs(key[0], "cpu" if key[1] < 0 else "cuda")
    make = _CASES.get(operator.name)
    made = _by_patterns(inputs, need) if make is None else make(inputs, key[2], dims)
    return Case(made, made) if callable(made) else made


def _by_patterns(inputs: _Inputs, need: Need) -> Run:
    call = need.operator.call_of(need.key)
    sizes = dict(zip(need.operator.dims, need.dims))
    tensors = [inputs.of(pattern.dtype, [sizes[axis] for axis in pattern.axes]) for pattern in call.patterns]
    return lambda: call.either(*tensors, *call.numbers)


def forward_of(need: Need) -> Need | None:
    """The forward pass that a backward pass is compared together with, of the same problem."""
    operator, key, dims = need
    return Need(FORWARD, key, dims) if operator.name == "flash_attention_backward" else None


class _Inputs:
    """Normal values of the problem's type."""

    def __init__(self, dtype: torch.dtype, device: str) -> None:
        self._dtype = dtype
        self._device = device

    def __call__(self, *shape: int) -> Tensor:
        return torch.randn(shape, dtype=self._dtype, device=self._device)

    def of(self, dtype: torch.dtype | None, shape: list[int]) -> Tensor:
        """The same; positive ones of another type."""
        return self(*shape) if dtype is None else torch.rand(shape, dtype=dtype, device=self._device) + 0.5

    def rows(self, count: int) -> Tensor:
        """A positive float32 for each row."""
        return torch.rand(count, device=self._device) + 0.5

    def targets(self, rows: int, classes: int) -> Tensor:
        """A class for each row."""
        return torch.randint(classes, (rows,), device=self._device)

    def ends(self, rows: int, groups: int) -> Tensor:
        """Where groups of as many rows as possible end, each of the same size."""
        return (torch.arange(1, groups + 1, device=self._device) * rows // groups).int()


_Make = Callable[[_Inputs, Dims, Dims], "Run | Case"]
ops = torch.ops.cubind


def _rms_norm_backward(inputs: _Inputs, flags: Dims, dims: Dims) -> Run:
    given = inputs(*dims), inputs(*dims), inputs(dims[1])
    return lambda: ops.rms_norm_backward(*given, _EPS)


def _rotary(inputs: _Inputs, flags: Dims, dims: Dims) -> Run:
    N, HQ, HKV, C, D = dims
    tables = inputs(C, D), inputs(C, D)
    q, k = inputs(N // C, C, HQ, D), inputs(N // C, C, HKV, D)
    if flags == (1,):
        return lambda: ops.rotary(q, k, *tables, True)
    return lambda: rotary(q.transpose(1, 2), k.transpose(1, 2), *tables)


def _grouped_mm(inputs: _Inputs, flags: Dims, dims: Dims) -> Case:
    M, N, K, E = dims
    a, b, offs = inputs(M, K), inputs(E, N, K).mT if flags[0] else inputs(E, K, N), inputs.ends(M, E)
    return Case(lambda: grouped_mm(a, b, offs=offs), lambda: functional.grouped_mm(a, b, offs=offs))


def _scaled_mm(inputs: _Inputs, flags: Dims, dims: Dims) -> Case:
    M, N, K = dims
    a, b = (inputs(rows, K).to(torch.float8_e4m3fn) for rows in (M, N))
    blocks, kinds = (K + 127) // 128, functional.ScalingType
    scales, recipes = (
        ((inputs.rows(1), inputs.rows(1)), (kinds.TensorWise, kinds.TensorWise)),
        ((inputs.rows(M).view(M, 1), inputs.rows(N).view(1, N)), (kinds.RowWise, kinds.RowWise)),
        (
            (
                inputs.rows(blocks * M).view(-1, M).t(),
                inputs.rows(-(-N // 128) * blocks).view(-1, blocks).t(),
            ),
            (kinds.BlockWise1x128, kinds.BlockWise128x128),
        ),
    )[flags[0] % EXACT]
    given = a, b.t(), scales[0], recipes[0], scales[1], recipes[1]
    fast = flags[0] < BY_BLOCK
    return Case(
        lambda: scaled_mm(*given, use_fast_accum=fast),
        lambda: functional.scaled_mm(*given, use_fast_accum=fast),
    )


def _scaled_grouped_mm(inputs: _Inputs, flags: Dims, dims: Dims) -> Case:
    M, N, K, E = dims
    a, b = (inputs(*shape).to(torch.float8_e4m3fn) for shape in ((M, K), (E, N, K)))
    recipe = functional.ScalingType.RowWise
    given = a, b.mT, inputs.rows(M), recipe, inputs.rows(E * N).view(E, N), recipe
    named = {"offs": inputs.ends(M, E), "use_fast_accum": flags[0] == BY_ROW}
    return Case(
        lambda: scaled_grouped_mm(*given, **named), lambda: functional.scaled_grouped_mm(*given, **named)
    )


def _cross_entropy_forward(inputs: _Inputs, flags: Dims, dims: Dims) -> Run:
    x, target = inputs(*dims), inputs.targets(*dims)
    return lambda: cross_entropy(x, target, reduction="none")


# Torch's own backward pass of torch's own loss, which has kept what it needs.
def _cross_entropy_backward(inputs: _Inputs, flags: Dims, dims: Dims) -> Case:
    x, target = inputs(*dims), inputs.targets(*dims)
    dloss, lse = inputs.rows(dims[0]), x.float().logsumexp(-1)
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        loss = functional.cross_entropy(leaf, target, reduction="none")
    slopes = dloss.to(loss.dtype)
    return Case(
        lambda: ops.cross_entropy_backward(dloss, x, target, lse, _IGNORED),
        lambda: torch.autograd.grad(loss, leaf, slopes, retain_graph=True),
    )


def _loss_and_gradient(inputs: _Inputs, flags: Dims, dims: Dims) -> Case:
    x, target, scale = inputs(*dims), inputs.targets(*dims), inputs.rows(1)
    leaf = x.clone().requires_grad_()

    def theirs() -> None:
        with torch.enable_grad():
            loss = functional.cross_entropy(leaf, target, reduction="none")
        torch.autograd.grad(loss, leaf, torch.ones_like(loss))

    return Case(lambda: judge_cuda(x, target, scale, _IGNORED), theirs)


def _heads(inputs: _Inputs, dims: Dims) -> tuple[Tensor, Tensor, Tensor]:
    B, HQ, HKV, SQ, SK, D = dims
    return inputs(B, HQ, SQ, D), inputs(B, HKV, SK, D), inputs(B, HKV, SK, D)


def _attention(inputs: _Inputs, flags: Dims, dims: Dims) -> Run:
    heads, causal = _heads(inputs, dims), bool(flags[0])
    if causal and dims[3] != dims[4]:
        return lambda: ops.attention(*heads, causal, 0, 0, 0, dims[5] ** -0.5)
    return lambda: scaled_dot_product_attention(*heads, is_causal=causal, enable_gqa=True)


# Both passes: torch's backward pass takes what torch's forward pass has kept, so that a model in training has
# both from one side.
def _attention_backward(inputs: _Inputs, flags: Dims, dims: Dims) -> Case | Run:
    heads, causal, scale = _heads(inputs, dims), bool(flags[0]), dims[5] ** -0.5
    slopes = inputs(*heads[0].shape)

    def ours() -> object:
        o, lse = ops.attention(*heads, causal, 0, 0, 0, scale)
        return ops.attention_backward(slopes, *heads, o, lse, causal, 0, 0, 0, scale)

    if causal and dims[3] != dims[4]:
        return ours
    leaves = [one.detach().requires_grad_() for one in heads]

    def theirs() -> object:
        with torch.enable_grad():
            o = functional.scaled_dot_product_attention(*leaves, is_causal=causal, enable_gqa=True)
        return torch.autograd.grad(o, leaves, slopes)

    return Case(ours, theirs)


_CASES: dict[str, _Make] = {
    "rmsnorm_backward": _rms_norm_backward,
    "rotary": _rotary,
    "grouped_mm": _grouped_mm,
    "scaled_grouped_mm": _scaled_grouped_mm,
    "scaled_mm": _scaled_mm,
    "cross_entropy_forward": _cross_entropy_forward,
    "cross_entropy_backward": _cross_entropy_backward,
    "cross_entropy": _loss_and_gradient,
    "flash_attention_forward": _attention,
    "flash_attention_backward": _attention_backward,
}
