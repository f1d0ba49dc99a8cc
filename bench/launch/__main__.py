"""Host time of a launch from Python: cubind beside Triton and torch, and the time from import to the first launch.

    python3 bench/launch [--native PROGRAM] [--json FILE]

Needs the package `cubind` with torch and Triton, and a GPU. `--native` is launch_native, which measures the same in C++
(cuLaunchKernel alone, prepared launches, distinct sizes, threads). The kernels are so short that the GPU is never waited for.
Times are microseconds: the median over rounds of the mean of one round. Exit status 1: a result is wrong.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional

sys.path.append(str(pathlib.Path(__file__).parents[1] / "rmsnorm_vs_torch_triton"))
import cubind
import triton_kernel

N, D, EPS = 64, 1024, 1e-6
CALLS, ROUNDS = 500, 41
SIZES = 10_000

# A process of its own: from the import to the first launch, without CUDA's own initialization.
FIRST_LAUNCH = {
    "cubind": """
import time, torch
x = torch.randn(64, 1024, device="cuda", dtype=torch.bfloat16); w = torch.ones_like(x[0]); y = torch.empty_like(x)
torch.cuda.synchronize(); start = time.perf_counter()
import cubind
kernel = cubind.connect("embedded").kernel("rmsnorm_forward")
kernel(x=x, w=w, y=y, eps=1e-6, N=64, D=1024, T="bf16")
torch.cuda.synchronize(); print(1e3 * (time.perf_counter() - start))
""",
    "triton": """
import sys, time, torch
sys.path.append(sys.argv[1])
x = torch.randn(64, 1024, device="cuda", dtype=torch.bfloat16); w = torch.ones_like(x[0]); y = torch.empty_like(x)
torch.cuda.synchronize(); start = time.perf_counter()
import triton_kernel
config = triton_kernel.row_configurations()[3]
triton_kernel.row_kernel.fn[(64,)](x, w, y, 64, 1024, 1e-6, POWER=1024, num_warps=4, **config.kwargs)
torch.cuda.synchronize(); print(1e3 * (time.perf_counter() - start))
""",
}


def host_time(call):
    """Microseconds a call."""
    for _ in range(CALLS):
        call()
    rounds = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        rounds.append(1e6 * (time.perf_counter() - start) / CALLS)
    return statistics.median(rounds)


def arrays():
    x = torch.randn(N, D, device="cuda", dtype=torch.bfloat16)
    w = torch.randn(D, device="cuda", dtype=torch.bfloat16)
    return x, w, torch.empty_like(x)


def is_right(y, x, w):
    wide = x.double()
    expected = wide * torch.rsqrt(wide.square().mean(1, keepdim=True) + EPS) * w.double()
    return torch.allclose(y.double(), expected, rtol=1.6e-2, atol=1e-5)


def graph_times(bound, x, w, y):
    """Microseconds a kernel inside of a CUDA graph of 200: the bound launch, and Triton's."""
    times = {}
    for name, call in {"bound": bound.launch, "triton": lambda: triton_kernel.rmsnorm(x, w, y, EPS)}.items():
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(200):
                call()
        graph.replay()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(20):
            graph.replay()
        torch.cuda.synchronize()
        times[name] = 1e6 * (time.perf_counter() - start) / (20 * 200)
    return times


def distinct_sizes(client, kernel, bound):
    """Microseconds that a launch for a size not seen before takes beyond a prepared one, and the calls to the daemon."""
    x, w = (
        torch.randn(16384, D, device="cuda", dtype=torch.bfloat16),
        torch.ones(D, device="cuda", dtype=torch.bfloat16),
    )
    y = torch.empty_like(x)
    stream = torch.cuda.current_stream().cuda_stream
    kernel(x=x, w=w, y=y, eps=EPS, N=16384, D=D, T="bf16")
    variant = kernel.loaded(N=16384, D=D, T="bf16")
    before, start = client.calls, time.perf_counter()
    for n in range(5000, 5000 + SIZES):
        variant.launch((n, D), stream, x, w, y, EPS)
        if n % 500 == 0:
            torch.cuda.synchronize()  # the queue must not fill up
    # The kernels take longer than their launches here, so the time is taken without them too.
    torch.cuda.synchronize()
    with_kernels = 1e6 * (time.perf_counter() - start) / SIZES
    start = time.perf_counter()
    for n in range(5000, 5000 + SIZES):
        variant.extents((n, D))
    lookup = 1e6 * (time.perf_counter() - start) / SIZES
    return {"calls": client.calls - before, "lookup_us": lookup, "with_kernels_us": with_kernels}


def first_launches():
    """Milliseconds from import to the first launch in a fresh process, the second run of each."""
    here = str(pathlib.Path(__file__).parents[1] / "rmsnorm_vs_torch_triton")
    times = {}
    for name, code in FIRST_LAUNCH.items():
        runs = [
            subprocess.run([sys.executable, "-c", code, here], capture_output=True, text=True)
            for _ in range(4)
        ]
        times[name] = [float(run.stdout) if run.returncode == 0 else run.stderr[-500:] for run in runs]
    return times


def operators(x, w):
    """Host time of the operators of cubind.torch, where the package has them."""
    try:
        import cubind.torch as operators  # noqa: PLC0415
    except ImportError:
        return {}
    with torch.no_grad():
        times = {"cubind_torch_rms_norm": host_time(lambda: operators.rms_norm(x, (D,), w, EPS))}
    gx, gw = x.clone().requires_grad_(), w.clone().requires_grad_()
    times["cubind_torch_rms_norm_autograd"] = host_time(lambda: operators.rms_norm(gx, (D,), gw, EPS))
    times["torch_rms_norm_autograd"] = host_time(lambda: torch.nn.functional.rms_norm(gx, (D,), gw, EPS))
    return times


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--native", type=pathlib.Path, help="the program launch_native")
    parser.add_argument("--json", type=pathlib.Path, help="where to write the results")
    options = parser.parse_args()
    client = cubind.connect()
    client.tune(
        [{"kernel": "rmsnorm_forward", "N": n, "D": D, "T": "bf16"} for n in (N, 16384)], progress=False
    )
    kernel = client.kernel("rmsnorm_forward", D=D, T="bf16")
    x, w, y = arrays()
    bound = kernel.bind(x=x, w=w, y=y, eps=EPS, N=N)
    bound()
    right = is_right(y, x, w)
    stream = torch.cuda.current_stream().cuda_stream
    fixed = kernel.bind(x=x, w=w, y=y, eps=EPS, N=N, stream=stream)
    results = {
        "right": right,
        "bound_launch": host_time(bound.launch),
        "bound_call": host_time(bound),
        "bound_launch_other_arrays": host_time(lambda: bound.launch(x, w, y)),
        "bound_launch_fixed_stream": host_time(fixed.launch),
        "kernel_call": host_time(lambda: kernel(x=x, w=w, y=y, eps=EPS, N=N)),
        "triton_autotuned": host_time(lambda: triton_kernel.rmsnorm(x, w, y, EPS)),
    }
    with torch.no_grad():
        results["torch_rms_norm"] = host_time(lambda: torch.nn.functional.rms_norm(x, (D,), w, EPS))
    results |= operators(x, w)
    results["graph_us_a_kernel"] = graph_times(bound, x, w, y)
    results["distinct_sizes"] = distinct_sizes(client, client.kernel("rmsnorm_forward"), bound)
    if options.native:
        native = subprocess.run([options.native], capture_output=True, text=True, check=True)
        results["native"] = json.loads(native.stdout)
    results["first_launch_ms"] = first_launches()
    text = json.dumps(results, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
