"""A program whose kernels a daemon serves: ADDRESS. It prints, as JSON, what Triton's own hook saw compiled
and found, and what was launched."""

import json
import sys

import triton_found  # noqa: F401  first: folders of its own

# isort: split
import cubind
import cubind.triton
import running
import triton
import triton.language as tl
import triton_replaying as replaying
import triton_stub as stub
from triton import knobs
from triton_stub import grid, tuned


@triton.jit
def add(x, y, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < N) + tl.load(y + at, mask=at < N), mask=at < N)


@triton.jit
def total(x, y, scale, BLOCK: tl.constexpr):
    tl.store(y, tl.sum(tl.load(x + tl.arange(0, BLOCK))) * scale)


def run():
    """Plain kernels with two specializations, and an autotuned one with a problem that the table has and one
    that it has not."""
    x, y = stub.Tensor((1000,)), stub.Tensor((1000,))
    for n in (1000, 1024):
        add[(8,)](x, y, n, BLOCK=128)
    total[(1,)](x, y, 0.5, BLOCK=512, num_warps=8)
    kernel = tuned()
    for n in (1000, 512):
        kernel[grid](x, y, n, 2.0)


def main():
    stub.start()
    seen = {True: [], False: []}
    knobs.compilation.listener = lambda src, cache_hit, **_: seen[cache_hit].append(src.name)
    with cubind.connect(sys.argv[1]) as client, replaying.on_its_gpu(client):
        cubind.triton.install(client, timeout=running.PATIENCE)
        run()
        report = cubind.triton.report()
        cubind.triton.uninstall()
    launches = [[launched, metadata.name, metadata.shared] for launched, metadata in stub.Driver.launches]
    print(json.dumps({"compiled": seen[False], "found": seen[True], "report": report, "launches": launches}))


if __name__ == "__main__":
    main()
