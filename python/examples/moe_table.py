"""A table of configurations for a mixture of experts, in the form that vLLM and SGLang read:

python -m cubind.triton table tune moe_table.py -o configs

Each size M is a number of tokens. The kernel has the form of vLLM's fused_moe_kernel: name that one here, and
launch it in call() as vLLM does.
"""

import itertools

import torch
import triton
import triton.language as tl
from cubind.triton import Table

E, N, K, TOP_K = 64, 1408, 2048, 6  # experts, their size, the model's size, experts per token


@triton.jit
def expert_product(
    a, b, c, tokens, experts, padded, columns, inner, valid, stride_am, stride_be, stride_bn, stride_cm,
    BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr,
    GROUP_SIZE_M: tl.constexpr, top_k: tl.constexpr,
):  # fmt: skip
    """c[token] = a[token / top_k] @ b[expert], for tokens sorted by their expert and padded to blocks."""
    all_padded = tl.load(padded)
    blocks_m, blocks_n = tl.cdiv(all_padded, BLOCK_SIZE_M), tl.cdiv(columns, BLOCK_SIZE_N)
    in_group = GROUP_SIZE_M * blocks_n
    first = tl.program_id(0) // in_group * GROUP_SIZE_M
    size = tl.minimum(blocks_m - first, GROUP_SIZE_M)
    block_m = first + tl.program_id(0) % in_group % size
    block_n = tl.program_id(0) % in_group // size
    token = tl.load(tokens + block_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)).to(tl.int64)
    is_valid = token < valid
    at_n = (block_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)) % columns
    at_k = tl.arange(0, BLOCK_SIZE_K)
    weights = b + tl.load(experts + block_m).to(tl.int64) * stride_be
    total = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), tl.float32)
    for k in range(0, inner, BLOCK_SIZE_K):
        left = at_k < inner - k
        rows = a + (token // top_k * stride_am)[:, None] + (k + at_k)[None, :]
        x = tl.load(rows, mask=is_valid[:, None] & left[None, :], other=0.0)
        y = tl.load(
            weights + (at_n * stride_bn)[None, :] + (k + at_k)[:, None], mask=left[:, None], other=0.0
        )
        total = tl.dot(x, y, total)
    out = block_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    pointers = c + (token * stride_cm)[:, None] + out[None, :]
    tl.store(pointers, total.to(c.dtype.element_ty), mask=is_valid[:, None] & (out < columns)[None, :])


def call(kernel, m, values):
    """Both products for m tokens with evenly chosen experts. Nothing runs: only integers need contents."""
    block = values["BLOCK_SIZE_M"]
    chosen = m * TOP_K
    busy = min(E, chosen)
    blocks = busy * -(-chosen // (busy * block))
    padded = blocks * block
    tokens = torch.randperm(padded, dtype=torch.int32)  # each once; those from `chosen` on are padding
    experts = (torch.arange(blocks) * E // blocks).to(torch.int32)
    post_padded = torch.tensor([padded], dtype=torch.int32)

    def product(rows, inner, columns, top_k):
        a = torch.empty(rows, inner, dtype=torch.bfloat16)
        b = torch.empty(E, columns, inner, dtype=torch.bfloat16)
        c = torch.empty(chosen, columns, dtype=torch.bfloat16)
        grid = lambda v: (blocks * triton.cdiv(columns, v["BLOCK_SIZE_N"]),)  # noqa: E731
        kernel[grid](
            a, b, c, tokens, experts, post_padded, columns, inner, chosen,
            a.stride(0), b.stride(0), b.stride(1), c.stride(0), top_k=top_k,
        )  # fmt: skip

    product(m, K, 2 * N, TOP_K)
    product(chosen, N, K, 1)


def default(m):
    """As vLLM's get_default_config()."""
    small, large = (16, 32, 64, 1), (64, 64, 32, 8)
    names = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M")
    return dict(zip(names, small if m <= E else large))


def candidates(m):
    """Blocks of the size that m tokens fill."""
    blocks_m = (16, 32) if m <= E else (64, 128)
    space = itertools.product(blocks_m, (64, 128), (64, 128), (1, 16), (4, 8), (3, 4))
    names = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M", "num_warps", "num_stages")
    return [dict(zip(names, values)) for values in space]


table = Table(
    kernel=expert_product,
    file=f"E={E},N={N},device_name={{device_name}}.json",
    rows=[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048],
    call=call,
    default=default,
    candidates=candidates,
    by=["BLOCK_SIZE_M"],
)
