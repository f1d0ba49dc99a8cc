"""A summary of the bench's results, compared with the targets.

    python3 bench/kernels/summary.py FILE

Prints the table of FILE in Markdown, and the summary as JSON. Needs neither torch nor a GPU.
"""

import json
import math
import pathlib
import sys

LARGE_BYTES = 256 << 20  # from here on a kernel on rows is compared with a copy
SIDES = ["torch", "torch_compile", "triton", "torch_flash", "cudnn"]


def times_of(line):
    return line.get("kernel_time_us", {})


def ratios(lines, side):
    """How often as long as cubind a side takes, for each line that has both."""
    return [times[side] / times["cubind"] for times in map(times_of, lines) if {side, "cubind"} <= set(times)]


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def rows_summary(lines):
    """The summary of the lines that have a copy."""
    large = [line for line in lines if line["work_bytes"] >= LARGE_BYTES]
    shares = ratios(large, "vector_copy")
    return {
        "problems": len(lines),
        "geometric_mean_over_torch": geometric_mean(ratios(lines, "torch")),
        "faster_than": {
            side: sum(ratio > 1 for ratio in ratios(lines, side))
            for side in ("torch", "torch_compile", "triton")
        },
        "slowest_beside": {
            side: min(ratios(lines, side), default=None) for side in ("torch", "torch_compile", "triton")
        },
        "share_of_copy_speed_from_256_MB": {"least": min(shares, default=None), "problems": len(shares)},
    }


def summary(results):
    lines = [line for line in results["problems"] if "cubind" in times_of(line)]
    rows = [line for line in lines if "vector_copy" in times_of(line)]
    others = [line for line in lines if "vector_copy" not in times_of(line)]
    return {
        "rows": rows_summary(rows),
        "others": [
            {
                "kernel": line["kernel"],
                "problem": line["problem"],
                "over": {side: ratios([line], side)[0] for side in SIDES if ratios([line], side)},
            }
            for line in others
        ],
    }


def shape(problem):
    sizes = {name: value for name, value in problem.items() if isinstance(value, int)}
    if "CAUSAL" in sizes:
        named = f"({sizes['B']}, {sizes['HQ']}, {sizes['SQ']}, {sizes['D']})"
        return named + (" causal" if sizes["CAUSAL"] else "")
    text = " x ".join(str(value) for name, value in sizes.items() if name in ("N", "D", "M", "K"))
    return text if problem["T"] == "bf16" else f"{text} {problem['T']}"


def row_table(lines):
    yield "| kernel | shape | cubind | torch | torch.compile | Triton | copy of as many bytes | do_bench: cubind, torch |"
    yield "|---|---|---|---|---|---|---|---|"
    for line in lines:
        times, bench = times_of(line), line["do_bench_time_us"]
        sides = ["cubind", "torch", "torch_compile", "triton", "vector_copy"]
        cells = [f"{times[side]:.1f}" if side in times else "" for side in sides]
        cells.append(", ".join(f"{bench[side]:.1f}" for side in sides[:2] if side in bench))
        yield f"| {line['kernel']} | {shape(line['problem'])} | {' | '.join(cells)} |"


def product_table(lines):
    yield "| problem | cubind | its `mma.sync` | torch (cuBLAS, flash backend) | torch.compile | cuDNN |"
    yield "|---|---|---|---|---|---|"
    for line in lines:
        times = times_of(line)
        columns = [("cubind",), ("mma.sync",), ("torch", "torch_flash"), ("torch_compile",), ("cudnn",)]
        found = [next((times[side] for side in column if side in times), None) for column in columns]
        cells = [f"{line['flops'] / time / 1e6:.1f}" if time else "" for time in found]
        yield f"| {line['kernel']} {shape(line['problem'])} | {' | '.join(cells)} |"


def tables(results):
    lines = sorted(
        (line for line in results["problems"] if times_of(line)),
        key=lambda line: (line["kernel"], line["work_bytes"]),
    )
    rows = [line for line in lines if "vector_copy" in times_of(line)]
    others = [line for line in lines if "vector_copy" not in times_of(line)]
    return "\n".join([*row_table(rows), "", *product_table(others)])


def main():
    results = json.loads(pathlib.Path(sys.argv[1]).read_text())
    print(tables(results))
    print(json.dumps(summary(results), indent=1))


if __name__ == "__main__":
    main()
