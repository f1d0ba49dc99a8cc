"""RMSNorm in Triton as its users write it: one pass with the next power of two as block, or a loop over blocks.

48 configurations, autotuned anew for each N and D.
"""

import torch
import triton
import triton.language as tl


def configurations():
    one_pass = [
        triton.Config({"ONE_PASS": True, "ROWS": rows, "BLOCK": 0}, num_warps=warps, num_stages=1)
        for rows in (1, 2, 4, 8)
        for warps in (1, 2, 4, 8, 16, 32)
    ]
    looped = [
        triton.Config({"ONE_PASS": False, "ROWS": 1, "BLOCK": block}, num_warps=warps, num_stages=stages)
        for block in (512, 1024, 2048, 4096)
        for warps in (4, 8, 16)
        for stages in (1, 3)
    ]
    return one_pass + looped


def launchable(configs, named, **_):
    """Drops tiles beyond 64 elements a thread, which spill and take seconds to compile."""
    block = triton.next_power_of_2(named["D"])
    return [c for c in configs if not c.kwargs["ONE_PASS"] or c.kwargs["ROWS"] * block <= 2048 * c.num_warps]


@triton.autotune(
    configs=configurations(),
    key=["N", "D"],
    prune_configs_by={"early_config_prune": launchable},
)
@triton.jit
def rmsnorm_kernel(
    x, w, y, N, D, eps, POWER: tl.constexpr, ONE_PASS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    if ONE_PASS:
        rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
        columns = tl.arange(0, POWER)
        offsets = rows[:, None] * D + columns[None, :]
        mask = (rows[:, None] < N) & (columns[None, :] < D)
        weight = tl.load(w + columns, mask=columns < D, other=0.0).to(tl.float32)
        value = tl.load(x + offsets, mask=mask, other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(value * value, axis=1) / D + eps)
        result = value * scale[:, None] * weight[None, :]
        tl.store(y + offsets, result.to(y.dtype.element_ty), mask=mask)
    else:
        start = tl.program_id(0).to(tl.int64) * D
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


def rmsnorm(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor, eps: float):
    N, D = x.shape

    def grid(meta):
        return (triton.cdiv(N, meta["ROWS"]),)

    rmsnorm_kernel[grid](x, w, y, N, D, eps, POWER=triton.next_power_of_2(D))


def chosen():
    return str(rmsnorm_kernel.best_config)
