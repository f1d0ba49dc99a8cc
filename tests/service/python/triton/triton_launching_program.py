"""A program that launches a kernel, with an empty cache: cubind or triton, by whose launcher it does. It
prints what the driver got."""

import sys

import triton_found  # noqa: F401  first: folders of its own

# isort: split
import running
import triton
import triton.language as tl
import triton_launchers as launchers
import triton_stub as stub


@triton.jit
def scaled(x, y, N, scale, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < N) * scale, mask=at < N)


def main():
    launchers.require()
    if sys.argv[1] == "cubind":
        stub.install(stub.Daemon())
    launchers.start()
    fake = running.FakeDriver(4)
    scaled[(3,)](launchers.Tensor(), launchers.Tensor(0x9000), 300, 2.0, BLOCK=128)
    (launch,) = fake.launches()
    print([*launch.grid], [*launch.block], *(hex(value) for value in launch.parameters[:4]))


if __name__ == "__main__":
    main()
