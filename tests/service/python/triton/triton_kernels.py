"""Kernels that have something each that Triton's IR must carry, and how each is specialized.

CASES: the source that Triton compiles, as it does for a call, its options, and the roles of the parameters.
"""

import dataclasses

import triton
import triton.language as tl
from triton.compiler import ASTSource
from triton.language.extra import libdevice


@triton.jit
def masks(x, y, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < N
    tl.store(y + at, tl.load(x + at, mask=inside, other=1.0) * 2, mask=inside)


@triton.jit
def dot(a, b, c, K, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    at = rows[:, None] * K + rows[None, :]
    total = tl.zeros([BLOCK, BLOCK], tl.float32)
    for _ in range(0, K, BLOCK):
        total = tl.dot(tl.load(a + at), tl.load(b + at), total)
        a += BLOCK
        b += BLOCK * K
    tl.store(c + at, total)


@triton.jit
def atomics(x, counts, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(counts + tl.load(x + at, mask=at < N, other=0), 1, mask=at < N)
    tl.atomic_cas(counts, 0, 1)


@triton.jit
def descriptors(x, y, M, N, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(y, [M, N], [N, 1], [BLOCK, BLOCK])
    row = tl.program_id(0) * BLOCK
    target.store([row, 0], source.load([row, 0]) + 1.0)


@getattr(triton, "constexpr_function", None) or tl.constexpr_function
def half(n):
    return n // 2


@triton.jit
def constexpr_functions(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, half(BLOCK))
    tl.store(y + at, tl.load(x + at))


@triton.jit
def library(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, libdevice.tgamma(libdevice.asin(tl.load(x + at))))


@triton.jit
def assembly(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    found = tl.inline_asm_elementwise(
        'shl.b32 $0, $1, 3; // loc("not a location")', "=r,r", [tl.load(x + at)], tl.int32, True, 1
    )
    tl.store(y + at, found)


@triton.jit
def random_numbers(y, seed, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.randn(seed, at))


@triton.jit
def sorting(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.sort(tl.load(x + at)))


@triton.jit
def _greater(a, i, b, j):
    return tl.where(a > b, a, b), tl.where(a > b, i, j)


@triton.jit
def reductions(x, y, index, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value, where = tl.reduce((tl.load(x + at), at), 0, _greater)
    tl.store(y, value)
    tl.store(index, where)


@triton.jit
def scans(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.cumsum(tl.load(x + at), 0))


@triton.jit
def loops(x, y, N, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    left = N
    while left > 0:
        here = x if left % 2 == 0 else x + 1
        total += tl.load(here + at)
        x += BLOCK
        left -= 1
    for step in tl.static_range(2):
        y += step
    tl.store(y + at, total)


@triton.jit(noinline=True)
def _stored(y, value):
    tl.store(y, value)


@triton.jit
def calls(x, y, BLOCK: tl.constexpr):
    _stored(y + BLOCK, tl.load(x))


@triton.jit
def addresses(table, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    found = tl.load(table).to(tl.pointer_type(tl.float32))
    tl.store(found + at, tl.load(y + at))


@triton.jit
def into_input(x, unused, out, N, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at) + 1, mask=at < N)
    tl.store(out + at, tl.full([BLOCK], 1.0, tl.float32))


@dataclasses.dataclass
class Case:
    kernel: object
    types: str
    block: int
    roles: str
    options: dict = dataclasses.field(default_factory=dict)

    def source(self):
        """What a call with arguments that are divisible by 16 is specialized to."""
        kinds = self.types.split()
        signature = dict(zip(self.kernel.arg_names, [*kinds, "constexpr"]))
        divisible = {(i,): [["tt.divisibility", 16]] for i, kind in enumerate(kinds) if kind[0] in "*i"}
        return ASTSource(self.kernel, signature, {"BLOCK": self.block}, divisible)


CASES = {
    case.kernel.__name__: case
    for case in [
        Case(masks, "*fp32 *fp32 i32", 1024, "in out in", {"num_warps": 8}),
        Case(dot, "*bf16 *bf16 *fp32 i32", 64, "in in out in", {"num_stages": 4}),
        Case(atomics, "*i32 *i32 i32", 256, "in inout in"),
        Case(descriptors, "*fp32 *fp32 i32 i32", 32, "in out in in", {"num_ctas": 1}),
        Case(constexpr_functions, "*fp16 *fp16", 512, "in out"),
        Case(library, "*fp32 *fp32", 256, "in out"),
        Case(assembly, "*i32 *i32", 256, "in out"),
        Case(random_numbers, "*fp32 i32", 256, "out in"),
        Case(sorting, "*i32 *i32", 128, "in out"),
        Case(reductions, "*fp32 *fp32 *i32", 512, "in out out", {"maxnreg": 64}),
        Case(scans, "*fp32 *fp32", 512, "in out", {"enable_fp_fusion": False}),
        Case(loops, "*fp32 *fp32 i32", 128, "in out in"),
    ]
}
# Not compared byte by byte: for their roles alone.
MORE = {
    case.kernel.__name__: case
    for case in [
        Case(calls, "*fp32 *fp32", 128, "inout inout"),
        Case(addresses, "*i64 *fp32", 128, "inout inout"),
        Case(into_input, "*fp32 *fp32 *fp32 i32", 128, "inout in out in"),
    ]
}
