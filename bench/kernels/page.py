"""The tables by shape of docs/kernel-library.md, from the shipped table of the H200.

    python3 bench/kernels/page.py [--check]

Replaces what stands between the page's two marks; --check only compares, and exits with 1 where they differ. A row: the
median time of the default and of the winner as they were measured side by side, what share of the roofline the
winner reaches (the spec's `work` at 4.8 TB/s and 989 TFLOP/s, whichever takes longer), and its tunables in the order of
the spec. Needs neither torch nor a GPU.
"""

import argparse
import json
import pathlib
import sys

from spec import Spec, expression

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "kernel-library.md"
TABLE = ROOT / "variants" / "tables" / "nvidia-h200.json"
BEGIN, END = "<!-- tables by shape: bench/kernels/page.py -->\n", "<!-- end of the tables -->\n"
BYTES_PER_US, FLOPS_PER_US = 4.8e6, 989e6


def label(problem):
    """Dims, types other than bf16, and flags that are set."""
    words = [f"{name}={value}" for name, value in problem["dims"].items()]
    words += [value for value in problem["types"].values() if value != "bf16"]
    words += [name if value == 1 else f"{name}={value}" for name, value in problem["flags"].items() if value]
    return " ".join(words)


def roofline_us(spec, problem):
    values = spec.values_of({**problem["dims"], **problem["types"], **problem["flags"]})
    work = spec.fields["work"]
    return max(
        expression(work["bytes"])(values) / BYTES_PER_US, expression(work["flops"])(values) / FLOPS_PER_US
    )


def table_of(kernel, records):
    spec = Spec.read(next(ROOT.glob(f"variants/*/{kernel}.json")))
    tunables = list(spec.fields["tunables"])
    winners = {tuple(record["configuration"].values()) for record in records}
    lines = [
        f"### {kernel}\n",
        f"{len(records)} problems, {len(winners)} different winners ({', '.join(tunables)}).\n",
        "| problem | default, µs | tuned, µs | gain | roofline | winner |",
        "|---|---|---|---|---|---|",
    ]
    for record in records:
        time, gain = record["time_us"], record["gain_over_default"]
        share = roofline_us(spec, record["problem"]) / time
        winner = " ".join(str(record["configuration"][name]) for name in tunables)
        lines.append(
            f"| {label(record['problem'])} | {time * gain:.2f} | {time:.2f} | {gain:.2f} | {100 * share:.0f} % | {winner} |"
        )
    return "\n".join(lines) + "\n"


def tables():
    by_kernel = {}
    for record in json.loads(TABLE.read_text())["records"]:
        by_kernel.setdefault(record["kernel"], []).append(record)
    return "\n".join(table_of(kernel, records) for kernel, records in by_kernel.items())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    wanted = f"{before}{BEGIN}\n{tables()}\n{END}{after}"
    if not arguments.check:
        PAGE.write_text(wanted)
    elif page != wanted:
        sys.exit(f"{PAGE.name}: the tables are not those of {TABLE.name}; run python3 bench/kernels/page.py")


if __name__ == "__main__":
    main()
