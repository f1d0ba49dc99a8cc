"""RMSNorm in Triton, autotuned for each N and D, in two forms.

`rmsnorm` is the kernel that its users write: a program a row, in one pass with the next power of two as block
or in a loop over blocks; 48 configurations. `rmsnorm_tiled` gives a program several rows, in one pass; 36
configurations.
"""

import torch
import triton
import triton.language as tl


def row_configurations():
    one_pass = [
        triton.Config({"ONE_PASS": True, "BLOCK": 0, "HINT": hint}, num_warps=warps, num_stages=1)
        for hint in ("", "evict_first")
        for warps in (1, 2, 4, 8, 16, 32)
    ]
    looped = [
        triton.Config({"ONE_PASS": False, "BLOCK": block, "HINT": ""}, num_warps=warps, num_stages=stages)
        for block in (512, 1024, 2048, 4096)
        for warps in (4, 8, 16)
        for stages in (1, 2, 3)
    ]
    return one_pass + looped


def tiled_configurations():
    return [
        triton.Config({"ROWS": rows, "HINT": hint}, num_warps=warps, num_stages=1)
        for rows in (2, 4, 8)
        for hint in ("", "evict_first")
        for warps in (1, 2, 4, 8, 16, 32)
    ]


def launchable(configs, named, **_):
    """Drops tiles beyond 64 elements per thread, which spill; keeps at least the last."""
    block = triton.next_power_of_2(named["D"])
    kept = [
        c
        for c in configs
        if c.kwargs.get("ROWS", 1) * block <= 2048 * c.num_warps or not c.kwargs.get("ONE_PASS", True)
    ]
    return kept or configs[-1:]


@triton.autotune(
    configs=row_configurations(), key=["N", "D"], prune_configs_by={"early_config_prune": launchable}
)
@triton.jit
def row_kernel(
    x, w, y, N, D, eps, POWER: tl.constexpr, ONE_PASS: tl.constexpr, BLOCK: tl.constexpr, HINT: tl.constexpr
):
    start = tl.program_id(0).to(tl.int64) * D
    if ONE_PASS:
        columns = tl.arange(0, POWER)
        mask = columns < D
        value = tl.load(x + start + columns, mask=mask, other=0.0, eviction_policy=HINT).to(tl.float32)
        weight = tl.load(w + columns, mask=mask, other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(value * value, axis=0) / D + eps)
        result = value * scale * weight
        tl.store(y + start + columns, result.to(y.dtype.element_ty), mask=mask)
    else:
        squares = tl.zeros([BLOCK], dtype=tl.float32)
        for first in range(0, D, BLOCK):
            columns = first + tl.arange(0, BLOCK)
            value = tl.load(x + start + columns, mask=columns < D, other=0.0).to(tl.float32)
            squares += value * value
        scale = tl.rsqrt(tl.sum(squares, axis=0) / D + eps)
        for first in range(0, D, BLOCK):
            columns = first + tl.arange(0, BLOCK)
            mask = columns < D
            value = tl.load(x + start + columns, mask=mask, other=0.0).to(tl.float32)
            weight = tl.load(w + columns, mask=mask, other=0.0).to(tl.float32)
            result = value * scale * weight
            tl.store(y + start + columns, result.to(y.dtype.element_ty), mask=mask)


@triton.autotune(
    configs=tiled_configurations(), key=["N", "D"], prune_configs_by={"early_config_prune": launchable}
)
@triton.jit
def tiled_kernel(x, w, y, N, D, eps, POWER: tl.constexpr, ROWS: tl.constexpr, HINT: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, POWER)
    offsets = rows[:, None] * D + columns[None, :]
    mask = (rows[:, None] < N) & (columns[None, :] < D)
    value = tl.load(x + offsets, mask=mask, other=0.0, eviction_policy=HINT).to(tl.float32)
    weight = tl.load(w + columns, mask=columns < D, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=1) / D + eps)
    result = value * scale[:, None] * weight[None, :]
    tl.store(y + offsets, result.to(y.dtype.element_ty), mask=mask)


def rmsnorm(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor, eps: float):
    N, D = x.shape
    row_kernel[(N,)](x, w, y, N, D, eps, POWER=triton.next_power_of_2(D))


def rmsnorm_tiled(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor, eps: float):
    N, D = x.shape

    def grid(meta):
        return (triton.cdiv(N, meta["ROWS"]),)

    tiled_kernel[grid](x, w, y, N, D, eps, POWER=triton.next_power_of_2(D))


def chosen():
    """The configurations that the autotuner chose last."""
    return {"triton": str(row_kernel.best_config), "triton_tiled": str(tiled_kernel.best_config)}
