"""Host time of a launch from Python: cubind, Triton and torch, and the time from import to the first
launch.

    python3 bench/launch [--only calls|operators] [--native PROGRAM] [--json FILE]

Needs the package `cubind` with torch and Triton, and a GPU; the plain kernel in a CUDA graph needs CuPy.
`--only calls` measures bound and unbound calls of one kernel, Triton's, and those of cubind.triton.bind();
`--only operators` measures cubind.torch. `--native` is launch_native, which measures the same in C++
(cuLaunchKernel alone, prepared launches, distinct sizes, threads). The kernels are so short that the host
never waits for the GPU.
Times are microseconds: the median over rounds of the mean of one round. Exit status 1: a result is wrong.
"""

import argparse
import itertools
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import cubind
import cubind.triton
import operators
import triton_kernel

N, D, EPS = 128, 1024, 1e-6
SIZES = 10_000

# A process of its own: from the import to the first launch, without CUDA's own initialization.
FIRST_LAUNCH = {
    "cubind": """
import time, torch
x = torch.randn(128, 1024, device="cuda", dtype=torch.bfloat16); w = torch.ones_like(x[0]); y = torch.empty_like(x)
torch.cuda.synchronize(); times = [time.perf_counter()]
import cubind
times.append(time.perf_counter())
client = cubind.connect("embedded")
times.append(time.perf_counter())
kernel = client.kernel("rmsnorm_forward")
times.append(time.perf_counter())
kernel(x=x, w=w, y=y, eps=1e-6, N=128, D=1024, T="bf16")
torch.cuda.synchronize(); times.append(time.perf_counter())
print(1e3 * (times[-1] - times[0]), *(1e3 * (b - a) for a, b in zip(times, times[1:])))
""",
    "triton": """
import sys, time, torch
sys.path.append(sys.argv[1])
x = torch.randn(128, 1024, device="cuda", dtype=torch.bfloat16); w = torch.ones_like(x[0]); y = torch.empty_like(x)
torch.cuda.synchronize(); start = time.perf_counter()
import triton_kernel
config = triton_kernel.row_configurations()[3]
triton_kernel.row_kernel.fn[(128,)](x, w, y, 128, 1024, 1e-6, POWER=1024, num_warps=4, **config.kwargs)
torch.cuda.synchronize(); print(1e3 * (time.perf_counter() - start))
""",
}


def say(case):
    """What is about to run: a case that hangs is known by its name."""
    print(f"bench/launch: {case}", file=sys.stderr, flush=True)


def arrays():
    x = torch.randn(N, D, device="cuda", dtype=torch.bfloat16)
    w = torch.randn(D, device="cuda", dtype=torch.bfloat16)
    return x, w, torch.empty_like(x)


def is_right(y, x, w):
    wide = x.double()
    expected = wide * torch.rsqrt(wide.square().mean(1, keepdim=True) + EPS) * w.double()
    return torch.allclose(y.double(), expected, rtol=1.6e-2, atol=1e-5)


def plain_launch(bound, x, w, y):
    """The bound kernel's cubin as CuPy launches it: a driver call with cubind nowhere about. None without
    CuPy."""
    try:
        import cupy  # noqa: PLC0415
    except ImportError:
        return None
    (launch,) = bound.answer.plan
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(bound.answer.cubin)
        file.flush()
        function = cupy.RawModule(path=file.name).get_function(launch["entry_symbol"])
    given = {
        "x": x.data_ptr(),
        "w": w.data_ptr(),
        "y": y.data_ptr(),
        "N": numpy_of("i64", N),
        "eps": numpy_of("f32", EPS),
    }
    values = tuple(given[parameter["name"]] for parameter in launch["parameters"])

    def call():
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            function(tuple(launch["grid"]), tuple(launch["block"]), values, shared_mem=launch["shared_bytes"])

    return call


def numpy_of(dtype, value):
    import numpy  # noqa: PLC0415

    return {"i64": numpy.int64, "f32": numpy.float32}[dtype](value)


def graph_times(calls):
    """Microseconds a kernel inside of a CUDA graph of 200, the median of 21 runs; the graphs take turns."""
    graphs = {}
    for name, call in calls.items():
        call()
        torch.cuda.synchronize()
        graphs[name] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graphs[name]):
            for _ in range(200):
                call()
        graphs[name].replay()
    times = {name: [] for name in calls}
    for _ in range(21):
        for name, graph in graphs.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(5):
                graph.replay()
            torch.cuda.synchronize()
            times[name].append(1e6 * (time.perf_counter() - start) / (5 * 200))
    return {name: statistics.median(values) for name, values in times.items()}


def distinct_sizes(client, kernel, bound):
    """Microseconds that a launch for a size not seen before takes beyond a prepared one, and the calls to the
    daemon."""
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
    """Milliseconds from import to the first launch in fresh processes, two of each; of cubind also the parts:
    import, connect, kernel, first call."""
    here = str(pathlib.Path(__file__).parents[1] / "common")
    times = {}
    for name, code in FIRST_LAUNCH.items():
        say(f"first launch of {name}")
        runs = [
            subprocess.run([sys.executable, "-c", code, here], capture_output=True, text=True, timeout=60)
            for _ in range(2)
        ]
        times[name] = [
            [float(part) for part in run.stdout.split()] if run.returncode == 0 else run.stderr[-500:]
            for run in runs
        ]
    return times


def host_times(calls):
    """Of each by its name."""
    times = {}
    for name, call in calls.items():
        say(name)
        times[name] = operators.host_time(call)
        say(f"{name}: {times[name]:.2f} us")
    return times


def tune_unless_known(client):
    """A shipped table has both problems for an H200."""
    for n in (N, 16384):
        problem = {"N": n, "D": D, "T": "bf16"}
        say(f"the answer for N={n}")
        if "default" in client.get("rmsnorm_forward", problem, tune=False).match:
            client.tune([problem], kernel="rmsnorm_forward", progress=False)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--native", type=pathlib.Path, help="the program launch_native")
    parser.add_argument("--only", choices=("calls", "operators"), help="measure these alone")
    parser.add_argument("--json", type=pathlib.Path, help="where to write the results")
    options = parser.parse_args()
    client = cubind.connect()
    tune_unless_known(client)
    results = {}
    right = True
    if options.only != "calls":
        results["operators"] = operators.operator_times(say)
        right = operators.are_right(results["operators"])
    if options.only != "operators":
        right = call_times(client, results) and right
    if options.only is None:
        graph_and_size_times(client, results)
        if options.native:
            say("native")
            native = subprocess.run([options.native], capture_output=True, text=True, check=True, timeout=120)
            results["native"] = json.loads(native.stdout)
        results["first_launch_ms"] = first_launches()
    text = json.dumps({"right": right, **results}, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")
    return 0 if right else 1


def repeats_are_right(kernel):
    """Whether calls that repeat an earlier one give the right values: with other values in the same arrays,
    on another stream, in a CUDA graph, and on every GPU whichever is the current one."""
    right = []
    for device in range(torch.cuda.device_count()):
        x, w, _ = (array.to(f"cuda:{device}") for array in arrays())
        for _ in range(2):
            right.append(is_right(kernel(x=x, w=w, eps=EPS), x, w))
        with torch.cuda.device(device):
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                torch.cuda._sleep(10_000_000)  # another stream would read x before it is written
                x.normal_()
                y = kernel(x=x, w=w, eps=EPS)
            stream.synchronize()
            right.append(is_right(y, x, w))
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                y = kernel(x=x, w=w, eps=EPS)
            x.normal_()
            graph.replay()
            right.append(is_right(y, x, w))
    say(f"repeated calls: {right.count(True)} of {len(right)} are right")
    return all(right)


def call_times(client, results):
    """Adds the host times of calls. Whether they gave the right values."""
    kernel = client.kernel("rmsnorm_forward")
    x, w, y = arrays()
    bound = kernel.bind(x=x, w=w, y=y, eps=EPS)
    bound()
    right = is_right(y, x, w) and repeats_are_right(kernel)
    triton_bound = cubind.triton.bind(triton_kernel.row_kernel, (N,), POWER=D)
    for _ in range(2):
        triton_bound(x, w, y.zero_(), N, D, EPS)
        right = is_right(y, x, w) and right
    stream = torch.cuda.current_stream().cuda_stream
    fixed = kernel.bind(x=x, w=w, y=y, eps=EPS, stream=stream)
    # More sizes than a kernel keeps calls: Python checks each again.
    sizes = itertools.cycle([x[:n] for n in range(17, 128)])
    results |= host_times(
        {
            "bound_launch": bound.launch,
            "bound_call": bound,
            "bound_launch_other_arrays": lambda: bound.launch(x, w, y),
            "bound_launch_fixed_stream": fixed.launch,
            "kernel_call": lambda: kernel(x=x, w=w, y=y, eps=EPS),
            "kernel_call_that_allocates": lambda: kernel(x=x, w=w, eps=EPS),
            "kernel_call_of_another_size": lambda: kernel(x=next(sizes), w=w, eps=EPS),
            "triton_autotuned": lambda: triton_kernel.rmsnorm(x, w, y, EPS),
            "triton_bound": lambda: triton_bound(x, w, y, N, D, EPS),
        }
    )
    return right


def graph_and_size_times(client, results):
    """Adds the times of kernels in a CUDA graph, and of sizes that were not seen before."""
    x, w, y = arrays()
    bound = client.kernel("rmsnorm_forward").bind(x=x, w=w, y=y, eps=EPS)
    say("graphs")
    in_graph = {"bound": bound.launch, "triton": lambda: triton_kernel.rmsnorm(x, w, y, EPS)}
    if (plain := plain_launch(bound, x, w, y)) is not None:
        in_graph["plain"] = plain
    results["graph_us_a_kernel"] = graph_times(in_graph)
    say(str(results["graph_us_a_kernel"]))
    say("distinct sizes")
    results["distinct_sizes"] = distinct_sizes(client, client.kernel("rmsnorm_forward"), bound)
    say(str(results["distinct_sizes"]))


if __name__ == "__main__":
    sys.exit(main())
