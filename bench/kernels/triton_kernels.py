"""The same operations in Triton, as its users write them, autotuned for each N and D.

A program takes one row or several in one pass with the next power of two as block, or goes over a row in
blocks where it is long. Gradients of parameters are partial sums of persistent programs, added up by a second
kernel.
"""

import torch
import triton
import triton.language as tl

LONG = 16384  # elements of a row above which it is taken in blocks


ONCE = False  # a configuration is compiled and launched once, and not measured


def briefly(call, **more):
    """The autotuner's measurement, a third as long as usual."""
    if ONCE:
        call()
        return [0.0, 0.0, 0.0]
    return triton.testing.do_bench(call, warmup=8, rep=32, **more)


def row_configurations():
    return [
        triton.Config({"ROWS": rows}, num_warps=warps, num_stages=1)
        for rows in (1, 2, 4, 8)
        for warps in (1, 2, 4, 8, 16, 32)
    ]


def block_configurations():
    return [
        triton.Config({"BLOCK": block}, num_warps=warps, num_stages=stages)
        for block in (1024, 2048, 4096, 8192)
        for warps in (4, 8, 16, 32)
        for stages in (1, 2, 3)
    ]


def launchable(configs, named, **_):
    """Drops tiles beyond 64 elements per thread, which spill, and those below one; keeps one at least."""
    block = triton.next_power_of_2(named["D"])
    kept = [c for c in configs if 32 * c.num_warps <= c.kwargs["ROWS"] * block <= 2048 * c.num_warps]
    return kept or configs[-1:]


def row_autotune():
    return triton.autotune(
        configs=row_configurations(),
        key=["N", "D"],
        prune_configs_by={"early_config_prune": launchable},
        do_bench=briefly,
    )


@row_autotune()
@triton.jit
def softmax_forward_rows(x, y, N, D, POWER: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, POWER)
    offsets = rows[:, None] * D + columns[None, :]
    mask = (rows[:, None] < N) & (columns[None, :] < D)
    value = tl.load(x + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    power = tl.exp(value - tl.max(value, axis=1)[:, None])
    result = power / tl.sum(power, axis=1)[:, None]
    tl.store(y + offsets, result.to(y.dtype.element_ty), mask=mask)


@triton.autotune(configs=block_configurations(), key=["N", "D"], do_bench=briefly)
@triton.jit
def softmax_forward_blocks(x, y, N, D, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * D
    maximum = -float("inf")
    total = 0.0
    for first in range(0, D, BLOCK):
        columns = first + tl.arange(0, BLOCK)
        value = tl.load(x + start + columns, mask=columns < D, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(maximum, tl.max(value, axis=0))
        total = total * tl.exp(maximum - higher) + tl.sum(tl.exp(value - higher), axis=0)
        maximum = higher
    for first in range(0, D, BLOCK):
        columns = first + tl.arange(0, BLOCK)
        value = tl.load(x + start + columns, mask=columns < D, other=-float("inf")).to(tl.float32)
        result = tl.exp(value - maximum) / total
        tl.store(y + start + columns, result.to(y.dtype.element_ty), mask=columns < D)


@row_autotune()
@triton.jit
def softmax_backward_rows(y, dy, dx, N, D, POWER: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, POWER)
    offsets = rows[:, None] * D + columns[None, :]
    mask = (rows[:, None] < N) & (columns[None, :] < D)
    value = tl.load(y + offsets, mask=mask, other=0.0).to(tl.float32)
    gradient = tl.load(dy + offsets, mask=mask, other=0.0).to(tl.float32)
    result = value * (gradient - tl.sum(value * gradient, axis=1)[:, None])
    tl.store(dx + offsets, result.to(dx.dtype.element_ty), mask=mask)


@triton.autotune(configs=block_configurations(), key=["N", "D"], do_bench=briefly)
@triton.jit
def softmax_backward_blocks(y, dy, dx, N, D, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * D
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for first in range(0, D, BLOCK):
        columns = first + tl.arange(0, BLOCK)
        value = tl.load(y + start + columns, mask=columns < D, other=0.0).to(tl.float32)
        total += value * tl.load(dy + start + columns, mask=columns < D, other=0.0).to(tl.float32)
    product = tl.sum(total, axis=0)
    for first in range(0, D, BLOCK):
        columns = first + tl.arange(0, BLOCK)
        value = tl.load(y + start + columns, mask=columns < D, other=0.0).to(tl.float32)
        gradient = tl.load(dy + start + columns, mask=columns < D, other=0.0).to(tl.float32)
        result = value * (gradient - product)
        tl.store(dx + start + columns, result.to(dx.dtype.element_ty), mask=columns < D)


@row_autotune()
@triton.jit
def layernorm_forward_rows(x, w, b, y, mean, rstd, N, D, eps, POWER: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, POWER)
    offsets = rows[:, None] * D + columns[None, :]
    inside = columns[None, :] < D
    mask = (rows[:, None] < N) & inside
    value = tl.load(x + offsets, mask=mask, other=0.0).to(tl.float32)
    average = tl.sum(value, axis=1) / D
    centered = tl.where(inside, value - average[:, None], 0.0)
    scale = tl.rsqrt(tl.sum(centered * centered, axis=1) / D + eps)
    weight = tl.load(w + columns, mask=columns < D, other=0.0).to(tl.float32)
    bias = tl.load(b + columns, mask=columns < D, other=0.0).to(tl.float32)
    result = centered * scale[:, None] * weight[None, :] + bias[None, :]
    tl.store(y + offsets, result.to(y.dtype.element_ty), mask=mask)
    tl.store(mean + rows, average, mask=rows < N)
    tl.store(rstd + rows, scale, mask=rows < N)


@row_autotune()
@triton.jit
def rmsnorm_forward_rows(x, w, y, N, D, eps, POWER: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, POWER)
    offsets = rows[:, None] * D + columns[None, :]
    mask = (rows[:, None] < N) & (columns[None, :] < D)
    value = tl.load(x + offsets, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=1) / D + eps)
    weight = tl.load(w + columns, mask=columns < D, other=0.0).to(tl.float32)
    result = value * scale[:, None] * weight[None, :]
    tl.store(y + offsets, result.to(y.dtype.element_ty), mask=mask)


@row_autotune()
@triton.jit
def rmsnorm_fused_forward_rows(
    x, residual, w, sum, y, rstd, N, D, eps, POWER: tl.constexpr, ROWS: tl.constexpr
):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, POWER)
    offsets = rows[:, None] * D + columns[None, :]
    mask = (rows[:, None] < N) & (columns[None, :] < D)
    value = tl.load(x + offsets, mask=mask, other=0.0).to(tl.float32)
    value += tl.load(residual + offsets, mask=mask, other=0.0).to(tl.float32)
    rounded = value.to(sum.dtype.element_ty)
    tl.store(sum + offsets, rounded, mask=mask)
    value = rounded.to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=1) / D + eps)
    weight = tl.load(w + columns, mask=columns < D, other=0.0).to(tl.float32)
    result = value * scale[:, None] * weight[None, :]
    tl.store(y + offsets, result.to(y.dtype.element_ty), mask=mask)
    tl.store(rstd + rows, scale, mask=rows < N)


def persistent_configurations():
    return [
        triton.Config({"PER_SM": per_sm}, num_warps=warps, num_stages=stages)
        for per_sm in (1, 2, 4)
        for warps in (4, 8, 16, 32)
        for stages in (1, 2)
    ]


@triton.autotune(configs=persistent_configurations(), key=["N", "D"], do_bench=briefly)
@triton.jit
def norm_backward_rows(
    x, w, dy, mean, rstd, dx, partial_w, partial_b, N, D, SMS,
    POWER: tl.constexpr, CENTERED: tl.constexpr, PER_SM: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    columns = tl.arange(0, POWER)
    mask = columns < D
    weight = tl.load(w + columns, mask=mask, other=0.0).to(tl.float32)
    sum_w = tl.zeros([POWER], dtype=tl.float32)
    sum_b = tl.zeros([POWER], dtype=tl.float32)
    for row in range(program, N, SMS * PER_SM):
        start = row.to(tl.int64) * D
        value = tl.load(x + start + columns, mask=mask, other=0.0).to(tl.float32)
        gradient = tl.load(dy + start + columns, mask=mask, other=0.0).to(tl.float32)
        scale = tl.load(rstd + row)
        if CENTERED:
            value = tl.where(mask, value - tl.load(mean + row), 0.0)
        h = value * scale
        g = gradient * weight
        rest = g - h * (tl.sum(g * h, axis=0) / D)
        if CENTERED:
            rest -= tl.sum(g, axis=0) / D
            sum_b += gradient
        sum_w += gradient * h
        tl.store(dx + start + columns, (rest * scale).to(dx.dtype.element_ty), mask=mask)
    tl.store(partial_w + program * D + columns, sum_w, mask=mask)
    if CENTERED:
        tl.store(partial_b + program * D + columns, sum_b, mask=mask)


@row_autotune()
@triton.jit
def weighted_sum_forward_rows(x, w, y, N, D, POWER: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, POWER)
    mask = (rows[:, None] < N) & (columns[None, :] < D)
    value = tl.load(x + rows[:, None] * D + columns[None, :], mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(w + columns, mask=columns < D, other=0.0).to(tl.float32)
    result = tl.sum(value * weight[None, :], axis=1)
    tl.store(y + rows, result.to(y.dtype.element_ty), mask=rows < N)


def tile_configurations():
    return [
        triton.Config({"ROWS": rows, "COLUMNS": columns, "PER_SM": per_sm}, num_warps=warps, num_stages=2)
        for rows in (8, 16, 32)
        for columns in (128, 256, 512)
        for per_sm in (2, 4)
        for warps in (4, 8)
    ]


@triton.autotune(configs=tile_configurations(), key=["N", "D"], do_bench=briefly)
@triton.jit
def weighted_sum_backward_tiles(
    x, w, dy, dx, partial, N, D, SMS, ROWS: tl.constexpr, COLUMNS: tl.constexpr, PER_SM: tl.constexpr
):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    part = tl.program_id(1)
    weight = tl.load(w + columns, mask=columns < D, other=0.0).to(tl.float32)
    total = tl.zeros([COLUMNS], dtype=tl.float32)
    for first in range(part * ROWS, N, tl.num_programs(1) * ROWS):
        rows = first.to(tl.int64) + tl.arange(0, ROWS)
        mask = (rows[:, None] < N) & (columns[None, :] < D)
        offsets = rows[:, None] * D + columns[None, :]
        value = tl.load(x + offsets, mask=mask, other=0.0).to(tl.float32)
        gradient = tl.load(dy + rows, mask=rows < N, other=0.0).to(tl.float32)
        total += tl.sum(value * gradient[:, None], axis=0)
        product = gradient[:, None] * weight[None, :]
        tl.store(dx + offsets, product.to(dx.dtype.element_ty), mask=mask)
    tl.store(partial + part * D + columns, total, mask=columns < D)


@triton.autotune(
    configs=[
        triton.Config({"COLUMNS": columns, "ROWS": rows}, num_warps=warps, num_stages=1)
        for columns in (16, 32, 64, 128)
        for rows in (16, 64, 256)
        for warps in (4, 8)
        if columns * rows <= 8192
    ],
    key=["P", "D"],
    do_bench=briefly,
)
@triton.jit
def column_sums(partial, out, P, D, COLUMNS: tl.constexpr, ROWS: tl.constexpr):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], dtype=tl.float32)
    for first in range(0, P, ROWS):
        rows = first + tl.arange(0, ROWS)
        mask = (rows[:, None] < P) & (columns[None, :] < D)
        total += tl.load(partial + rows[:, None] * D + columns[None, :], mask=mask, other=0.0)
    tl.store(out + columns, tl.sum(total, axis=0).to(out.dtype.element_ty), mask=columns < D)


def add_up(partial, out, P):
    D = out.numel()
    column_sums[lambda meta: (triton.cdiv(D, meta["COLUMNS"]),)](partial, out, P, D)


def _rows_grid(N):
    return lambda meta: (triton.cdiv(N, meta["ROWS"]),)


def _sms():
    return torch.cuda.get_device_properties(0).multi_processor_count


def softmax_forward(b):
    N, D = b["x"].shape
    if D > LONG:
        softmax_forward_blocks[(N,)](b["x"], b["y"], N, D)
    else:
        softmax_forward_rows[_rows_grid(N)](b["x"], b["y"], N, D, POWER=triton.next_power_of_2(D))


def softmax_backward(b):
    N, D = b["y"].shape
    if D > LONG:
        softmax_backward_blocks[(N,)](b["y"], b["dy"], b["dx"], N, D)
    else:
        power = triton.next_power_of_2(D)
        softmax_backward_rows[_rows_grid(N)](b["y"], b["dy"], b["dx"], N, D, POWER=power)


def layernorm_forward(b):
    N, D = b["x"].shape
    power = triton.next_power_of_2(D)
    layernorm_forward_rows[_rows_grid(N)](
        b["x"], b["w"], b["b"], b["y"], b["mean"], b["rstd"], N, D, 1e-5, POWER=power
    )


def rmsnorm_forward(b):
    N, D = b["x"].shape
    power = triton.next_power_of_2(D)
    rmsnorm_forward_rows[_rows_grid(N)](b["x"], b["w"], b["y"], N, D, 1e-5, POWER=power)


def rmsnorm_fused_forward(b):
    N, D = b["x"].shape
    rmsnorm_fused_forward_rows[_rows_grid(N)](
        b["x"], b["residual"], b["w"], b["sum"], b["y"], b["rstd"], N, D, 1e-5,
        POWER=triton.next_power_of_2(D),
    )  # fmt: skip


# Partial sums of the largest grid: programs beyond those of a smaller one leave theirs as they were, so the
# sum takes only those of the chosen configuration.
def _norm_backward(b, centered):
    N, D = b["x"].shape
    sms = _sms()
    if "triton_partial" not in b:
        b["triton_partial"] = torch.empty(2, 4 * sms, D, dtype=torch.float32, device="cuda")
    partial = b["triton_partial"]
    norm_backward_rows[lambda meta: (sms * meta["PER_SM"],)](
        b["x"], b["w"], b["dy"], b.get("mean", b["rstd"]), b["rstd"], b["dx"], partial[0], partial[1], N, D, sms,
        POWER=triton.next_power_of_2(D), CENTERED=centered,
    )  # fmt: skip
    programs = sms * norm_backward_rows.best_config.kwargs["PER_SM"]
    add_up(partial[0], b["dw"], programs)
    if centered:
        add_up(partial[1], b["db"], programs)


def layernorm_backward(b):
    _norm_backward(b, centered=True)


def rmsnorm_backward(b):
    _norm_backward(b, centered=False)


def weighted_sum_forward(b):
    N, D = b["x"].shape
    weighted_sum_forward_rows[_rows_grid(N)](b["x"], b["w"], b["y"], N, D, POWER=triton.next_power_of_2(D))


def _parts(sms, D, meta):
    return max(1, sms * meta["PER_SM"] // triton.cdiv(D, meta["COLUMNS"]))


def weighted_sum_backward(b):
    N, D = b["x"].shape
    sms = _sms()
    if "triton_partial" not in b:
        b["triton_partial"] = torch.empty(4 * sms, D, dtype=torch.float32, device="cuda")
    weighted_sum_backward_tiles[lambda meta: (triton.cdiv(D, meta["COLUMNS"]), _parts(sms, D, meta))](
        b["x"], b["w"], b["dy"], b["dx"], b["triton_partial"], N, D, sms
    )
    parts = _parts(sms, D, weighted_sum_backward_tiles.best_config.kwargs)
    add_up(b["triton_partial"], b["dw"], parts)


CALLS = {
    "softmax_forward": softmax_forward,
    "softmax_backward": softmax_backward,
    "layernorm_forward": layernorm_forward,
    "layernorm_backward": layernorm_backward,
    "rmsnorm_forward": rmsnorm_forward,
    "rmsnorm_backward": rmsnorm_backward,
    "rmsnorm_fused_forward": rmsnorm_fused_forward,
    "weighted_sum_forward": weighted_sum_forward,
    "weighted_sum_backward": weighted_sum_backward,
}


def chosen(kernel, D):
    """The configuration that the autotuner chose last for a kernel."""
    functions = {
        "softmax_forward": softmax_forward_blocks if D > LONG else softmax_forward_rows,
        "softmax_backward": softmax_backward_blocks if D > LONG else softmax_backward_rows,
        "layernorm_forward": layernorm_forward_rows,
        "layernorm_backward": norm_backward_rows,
        "rmsnorm_forward": rmsnorm_forward_rows,
        "rmsnorm_backward": norm_backward_rows,
        "rmsnorm_fused_forward": rmsnorm_fused_forward_rows,
        "weighted_sum_forward": weighted_sum_forward_rows,
        "weighted_sum_backward": weighted_sum_backward_tiles,
    }
    return str(functions[kernel].best_config)
