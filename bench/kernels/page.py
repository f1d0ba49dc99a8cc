"""The tables by shape of docs/kernel-library.md, from the shipped table of the H200 and
bench/results/nvidia-h200.

    python3 bench/kernels/page.py [--check]
    python3 bench/kernels/page.py --trials EXPORT

Replaces what stands between the page's two marks; --check only compares, and exits with 1 where they differ
or where the table has other problems than variants/shapes.jsonl, the list that it is made from, or
launch_all.py has none for a kernel. A row: the median time of the default and of the winner as they were
measured side by side, the slowest configuration that was tried and correct (trials.json), the fastest call of
torch, cuBLAS or cuDNN (kernels.json and kernels_more.json, if the L2 was cleared as for the record), what
share of the roofline the winner reaches (the spec's `work` at 4.8 TB/s and 989 TFLOP/s, whichever takes
longer), and the winner's tunables in the order of the spec. --trials brings trials.json up to date from
`cubindctl export --all-trials --samples`, which is too large to be kept. Needs neither torch nor a GPU.
"""

import argparse
import functools
import json
import pathlib
import statistics
import sys

from shapes import ONE_OF_EACH
from spec import Spec, expression

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "kernel-library.md"
TABLE = ROOT / "variants" / "tables" / "nvidia-h200.json"
RESULTS = ROOT / "bench" / "results" / "nvidia-h200"
SHAPES = ROOT / "variants" / "shapes.jsonl"
TRIALS = RESULTS / "trials.json"
BEGIN, END = "<!-- tables by shape: bench/kernels/page.py -->\n", "<!-- end of the tables -->\n"
LIBRARIES = {"torch", "torch_flash", "cudnn"}  # as the benchmark calls them
BYTES_PER_US, FLOPS_PER_US = 4.8e6, 989e6


def label(problem):
    """Dims, types other than bf16, and flags that are set."""
    words = [f"{name}={value}" for name, value in problem["dims"].items()]
    words += [value for value in problem["types"].values() if value != "bf16"]
    words += [name if value == 1 else f"{name}={value}" for name, value in problem["flags"].items() if value]
    return " ".join(words)


def flat(problem):
    return {**problem["dims"], **problem["types"], **problem["flags"]}


def key_of(kernel, problem):
    """A problem with its flags left out or not, in any order."""
    flags = spec_of(kernel).fields["problem"].get("flags", {})
    return kernel, tuple(sorted({**flags, **problem}.items()))


@functools.cache
def spec_of(kernel):
    return Spec.read(next(ROOT.glob(f"variants/*/{kernel}.json")))


def library_times():
    """{key: microseconds} of the fastest call of a library for each problem that a benchmark has. A key ends
    with the policy under which it was measured."""
    times = {}
    for name in ("kernels.json", "kernels_more.json"):
        found = json.loads((RESULTS / name).read_text())
        for line in found["problems"]:
            key = (*key_of(line["kernel"], line["problem"]), found["toolchain"]["policy"])
            for library in LIBRARIES & line["kernel_time_us"].keys():
                times[key] = min(line["kernel_time_us"][library], times.get(key, float("inf")))
    return times


def median_us(trial):
    """Of the last stage that measured the trial."""
    stages = [trial["finals"], trial["screening"]]
    samples = next(stage for stage in stages if stage)
    return statistics.median(sample for block in samples for sample in block["samples_us"])


def slowest_of(export):
    """What trials.json has for each problem of an export: its correct trials, and the time of the slowest."""
    times = {}
    for trial in export["trials"]:
        if trial["outcome"] == "correct" and (trial["finals"] or trial["screening"]):
            key = key_of(trial["kernel"], flat(trial["problem"]))
            times.setdefault(key, []).append(median_us(trial))
    return [
        {"kernel": kernel, "problem": dict(problem), "correct": len(each), "slowest_us": round(max(each), 2)}
        for (kernel, problem), each in times.items()
    ]


def update_trials(export):
    known = json.loads(TRIALS.read_text()) if TRIALS.exists() else []
    lines = {key_of(line["kernel"], line["problem"]): line for line in [*known, *slowest_of(export)]}
    text = ",\n".join(json.dumps(lines[key]) for key in sorted(lines, key=str))
    TRIALS.write_text(f"[\n{text}\n]\n")


def slowest_times():
    lines = json.loads(TRIALS.read_text()) if TRIALS.exists() else []
    return {key_of(line["kernel"], line["problem"]): line["slowest_us"] for line in lines}


def roofline_us(spec, problem):
    values = spec.values_of(flat(problem))
    work = spec.fields["work"]
    return max(
        expression(work["bytes"])(values) / BYTES_PER_US, expression(work["flops"])(values) / FLOPS_PER_US
    )


def library_of(record, libraries):
    """Microseconds of a library after the same clearing of the L2; None where nobody measured it."""
    return libraries.get((*key_of(record["kernel"], flat(record["problem"])), record["policy"]))


def beside_library(spec, records, libraries):
    """A sentence on what one would call instead, and at how many of the problems that is faster."""
    times = [(record["time_us"], library_of(record, libraries)) for record in records]
    known = [(own, library) for own, library in times if library]
    if not known:
        return f"Instead one would call {spec.fields['baseline']}."
    faster = sum(library < own for own, library in known)
    return f"Instead one would call {spec.fields['baseline']}: faster at {faster} of {len(known)} problems measured."


def table_of(kernel, records, slowest, libraries):
    spec = spec_of(kernel)
    tunables = list(spec.fields["tunables"])
    winners = {tuple(record["configuration"].values()) for record in records}
    lines = [
        f"### {kernel}\n",
        f"{len(records)} problems, {len(winners)} different winners ({', '.join(tunables)}).",
        beside_library(spec, records, libraries) + "\n",
        "| problem | default, µs | tuned, µs | gain | slowest, µs | library, µs | roofline | winner |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for record in records:
        time, gain = record["time_us"], record["gain_over_default"]
        share = roofline_us(spec, record["problem"]) / time
        winner = " ".join(str(record["configuration"][name]) for name in tunables)
        key = key_of(kernel, flat(record["problem"]))
        columns = [label(record["problem"]), f"{time * gain:.2f}", f"{time:.2f}", f"{gain:.2f}"]
        columns += [f"{us:.2f}" if us else "" for us in (slowest.get(key), library_of(record, libraries))]
        lines.append(f"| {' | '.join([*columns, f'{100 * share:.0f} %', winner])} |")
    return "\n".join(lines) + "\n"


def tables():
    by_kernel = {}
    for record in json.loads(TABLE.read_text())["records"]:
        by_kernel.setdefault(record["kernel"], []).append(record)
    slowest, libraries = slowest_times(), library_times()
    return "\n".join(table_of(kernel, records, slowest, libraries) for kernel, records in by_kernel.items())


def check_shapes():
    """The list and the table have the same problems, and each kernel has one that launch_all.py tunes."""
    kernels = {
        file.stem for file in ROOT.glob("variants/*/*.json") if "launches" in json.loads(file.read_text())
    }
    if kernels != set(ONE_OF_EACH):
        sys.exit(f"shapes.py: ONE_OF_EACH and variants/ differ in {sorted(kernels ^ set(ONE_OF_EACH))}")
    listed = {key_of(line.pop("kernel"), line) for line in map(json.loads, SHAPES.read_text().splitlines())}
    records = json.loads(TABLE.read_text())["records"]
    measured = {key_of(record["kernel"], flat(record["problem"])) for record in records}
    for keys, what in ((listed - measured, "has no record of"), (measured - listed, "has a record beyond")):
        if keys:
            kernel, problem = min(keys, key=str)
            sys.exit(f"{TABLE.name} {what} {SHAPES.name}: {kernel} {dict(problem)}, {len(keys)} in all")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--trials", type=pathlib.Path, metavar="EXPORT", help="an export of all trials")
    arguments = parser.parse_args()
    if arguments.check:
        check_shapes()
    if arguments.trials:
        update_trials(json.loads(arguments.trials.read_text()))
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
