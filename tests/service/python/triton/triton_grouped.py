"""A kernel whose integers are tables, as in a mixture of experts: with random entries several programs would
write the same rows, with different values."""

import torch
import triton
import triton.language as tl
import triton_stub as stub

ROWS, WIDTH, EXPERTS = 64, 32, 4  # rows of a tile; columns of x and of a weight; weights


@triton.jit
def grouped(x, w, expert_of, start_of, ends, y, N, ROWS: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr):
    """y[row] = x[row] @ w[expert], for rows sorted by their expert. A tile has rows of one expert."""
    tile = tl.program_id(0)
    expert = tl.load(expert_of + tile)
    rows = tl.load(start_of + tile) + tl.arange(0, ROWS)
    is_own = rows < tl.load(ends + expert)
    inner, columns = tl.arange(0, K), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + rows[:, None] * K + inner[None, :], mask=is_own[:, None], other=0.0)
    b = tl.load(
        w + (expert * K + inner[:, None]) * N + columns[None, :], mask=columns[None, :] < N, other=0.0
    )
    mask = is_own[:, None] & (columns[None, :] < N)
    tl.store(y + rows[:, None] * N + columns[None, :], tl.dot(a, b, input_precision="ieee"), mask=mask)


def tuned():
    """A fresh autotuner of its own."""
    return triton.autotune(stub.configurations(16, 32), ["N"])(grouped)


def grid(tiles):
    """Of that many tiles."""
    return lambda values: (tiles, triton.cdiv(values["N"], values["BLOCK"]))


def tables(sizes):
    """Of experts with so many rows: the expert and the first row of each tile, and where experts end."""
    ends = torch.tensor(sizes).cumsum(0)
    tiles = [
        (expert, end - size + first)
        for expert, (size, end) in enumerate(zip(sizes, ends.tolist()))
        for first in range(0, size, ROWS)
    ]
    expert_of, start_of = (torch.tensor(table, dtype=torch.int32) for table in zip(*tiles))
    return expert_of, start_of, ends.to(torch.int32)
