"""cold_cache_program.py FILE: launches the kernels of triton_kernels.py and an autotuned one, and writes what
they computed to FILE. It prints, as JSON, what Triton's own hook saw compiled and found, and the seconds from
the first launch until all results are there. It knows nothing of cubind."""

import json
import sys
import time

import torch
import triton
import triton.language as tl
import triton_kernels as kernels
from triton import knobs


def configurations():
    return [triton.Config({"BLOCK": block}, num_warps=warps) for block in (256, 1024) for warps in (4, 8)]


@triton.autotune(configs=configurations(), key=["N"])
@triton.jit
def double(x, y, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < N) * 2, mask=at < N)


def inputs():
    torch.manual_seed(0)
    return {
        "floats": torch.rand(4096, device="cuda") * 0.9,
        "halves": torch.randn(4096, device="cuda").half(),
        "a": torch.randn(64, 256, device="cuda").bfloat16(),
        "b": torch.randn(256, 256, device="cuda").bfloat16(),
        "integers": torch.randint(1, 50, (4096,), device="cuda", dtype=torch.int32),
    }


def results(x):
    """Each kernel's output by its name. `descriptors` is left out: it needs scratch memory, and so Triton
    compiles it."""
    made = {}

    def launch(name, grid, dtype, size, *arguments):
        case = kernels.CASES[name]
        out = made[name] = torch.zeros(size, dtype=dtype, device="cuda")
        given = [out if argument is None else argument for argument in arguments]
        case.kernel[(grid,)](*given, BLOCK=case.block, **case.options)

    f32, i32 = torch.float32, torch.int32
    index = torch.zeros(1, dtype=i32, device="cuda")
    launch("masks", 4, f32, 4000, x["floats"], None, 4000)
    launch("dot", 1, f32, (64, 256), x["a"], x["b"], None, 256)
    launch("atomics", 16, i32, 50, x["integers"], None, 4096)
    launch("constexpr_functions", 1, torch.float16, 256, x["halves"], None)
    launch("library", 1, f32, 256, x["floats"], None)
    launch("assembly", 1, i32, 256, x["integers"], None)
    launch("random_numbers", 1, f32, 256, None, 7)
    launch("sorting", 1, i32, 128, x["integers"], None)
    launch("reductions", 1, f32, 1, x["floats"], None, index)
    launch("scans", 1, f32, 512, x["floats"], None)
    launch("loops", 1, f32, 130, x["floats"], None, 3)
    made["double"] = torch.zeros(4096, device="cuda")
    double[lambda meta: (triton.cdiv(4096, meta["BLOCK"]),)](x["floats"], made["double"], 4096)
    return made | {"index": index}


def main():
    seen = {True: [], False: []}
    knobs.compilation.listener = lambda src, cache_hit, **_: seen[cache_hit].append(src.name)
    x = inputs()
    torch.cuda.synchronize()
    start = time.perf_counter()
    made = results(x)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    torch.save({name: value.cpu() for name, value in (x | made).items()}, sys.argv[1])
    configuration = str(double.best_config)
    print(
        json.dumps(
            {"compiled": seen[False], "found": seen[True], "seconds": seconds, "double": configuration}
        )
    )


if __name__ == "__main__":
    main()
