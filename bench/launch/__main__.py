"""Host time of a launch from Python: cubind, Triton and torch.

    python3 bench/launch [--only calls|operators] [--native PROGRAM] [--json FILE]

Needs the package `cubind` with torch and Triton, and a GPU. `--only calls` measures bound and unbound calls
of one kernel, Triton's, and those of cubind.triton.bind(); `--only operators` measures cubind.torch.
`--native` is launch_native, which measures the same in C++ (cuLaunchKernel alone, prepared launches, distinct
sizes, threads). The kernels are so short that the host never waits for the GPU. `./dev bench first_launch`
measures the time from import to the first result.
Times are microseconds: the median over rounds of the mean of one round. Exit status 1: a result is wrong.
"""

import itertools
import json
import pathlib
import subprocess
import sys

import torch

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
import command_line
import cubind
import cubind.triton
import operators
import triton_kernel

N, D, EPS = 128, 1024, 1e-6


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


def host_times(calls):
    """Of each by its name."""
    times = {}
    for name, call in calls.items():
        say(name)
        times[name] = operators.host_time(call)
        say(f"{name}: {times[name]:.2f} us")
    return times


def tune_unless_known(client):
    """A shipped table has the problem for an H200."""
    problem = {"N": N, "D": D, "T": "bf16"}
    if "default" in client.get("rmsnorm_forward", problem, tune=False).match:
        client.tune([problem], kernel="rmsnorm_forward", progress=False)


def main():
    parser = command_line.make_parser(__doc__)
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
    if options.native:
        say("native")
        native = subprocess.run([options.native], capture_output=True, text=True, check=True, timeout=120)
        results["native"] = json.loads(native.stdout)
    command_line.print_and_write({"right": right, **results}, options.json)
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


if __name__ == "__main__":
    sys.exit(main())
