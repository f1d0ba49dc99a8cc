"""A summary of the bench's results, compared with the targets. Needs neither torch nor a GPU."""

import math

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
