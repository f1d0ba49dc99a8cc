"""The measured parts of the kernel library's pages: the shipped table, its slowest configurations, and the
library compared with torch."""

import functools
import json
import pathlib
import statistics

from page_spec import code, table
from spec import Spec, expression
from summary import geometric_mean

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "variants" / "tables" / "nvidia-h200.json"
RESULTS = ROOT / "bench" / "results" / "nvidia-h200"
TRIALS = RESULTS / "trials.json"
BYTES_PER_US, FLOPS_PER_US = 4.8e6, 989e6
SIDES = {
    "torch": ("torch", "torch_flash"),
    "torch.compile": ("torch_compile",),
    "Triton": ("triton",),
    "cuDNN": ("cudnn",),
}
OWN = {"copy of as many bytes": "vector_copy", "cubind by `mma.sync`": "mma.sync"}
COMPARISON = (
    "Microseconds per call on an NVIDIA H200 with a cold L2, all sides of a problem in turn in one run\n"
    "([runs and command](../kernel-library.md#which-to-use)):"
)


def label(problem):
    """Dims, types other than bf16, and flags that are set."""
    words = [f"{name}={value}" for name, value in problem["dims"].items()]
    words += [value for value in problem["types"].values() if value != "bf16"]
    words += [name if value == 1 else f"{name}={value}" for name, value in problem["flags"].items() if value]
    return " ".join(words)


def flat(problem):
    return {**problem["dims"], **problem["types"], **problem["flags"]}


@functools.cache
def spec_of(kernel):
    return Spec.read(next(ROOT.glob(f"variants/*/{kernel}.json")))


def key_of(kernel, problem):
    """A problem with its flags left out or not, in any order."""
    flags = spec_of(kernel).fields["problem"].get("flags", {})
    return kernel, tuple(sorted({**flags, **problem}.items()))


def structured(kernel, problem):
    """A flat problem in the form of a record."""
    fields = spec_of(kernel).fields["problem"]
    kinds = {kind: fields.get(kind, {}) for kind in ("dims", "types", "flags")}
    return {
        kind: {name: problem.get(name, kinds["flags"].get(name)) for name in names}
        for kind, names in kinds.items()
    }


@functools.cache
def records():
    """The records of the shipped table by kernel."""
    by_kernel = {}
    for record in json.loads(TABLE.read_text())["records"]:
        by_kernel.setdefault(record["kernel"], []).append(record)
    return by_kernel


@functools.cache
def comparisons():
    """The timed problems of the benchmark by kernel, each with the newest run that has it."""
    runs = [json.loads(file.read_text()) for file in RESULTS.glob("kernels*.json")]
    newest = {}
    for run in sorted(runs, key=lambda run: run["toolchain"]["date"]):
        for line in run["problems"]:
            if "cubind" in line.get("kernel_time_us", {}):
                newest[key_of(line["kernel"], line["problem"])] = {**line, "run": run["toolchain"]}
    by_kernel = {}
    for (kernel, _), line in newest.items():
        by_kernel.setdefault(kernel, []).append(line)
    return by_kernel


def side_times(line):
    """Microseconds by the name of a side."""
    times = line["kernel_time_us"]
    found = {side: [times[key] for key in keys if key in times] for side, keys in SIDES.items()}
    return {side: min(each) for side, each in found.items() if each}


# --- what a search left in trials.json ---


def median_us(trial):
    """Of the last stage that measured the trial."""
    samples = trial["finals"] or trial["screening"]
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


@functools.cache
def slowest_times():
    lines = json.loads(TRIALS.read_text()) if TRIALS.exists() else []
    return {key_of(line["kernel"], line["problem"]): line["slowest_us"] for line in lines}


# --- sections of a kernel's page ---


def roofline_us(spec, problem):
    values = spec.values_of(flat(problem))
    work = spec.fields["work"]
    return max(
        expression(work["bytes"])(values) / BYTES_PER_US, expression(work["flops"])(values) / FLOPS_PER_US
    )


def shape_row(spec, record):
    kernel, problem = record["kernel"], record["problem"]
    time, gain = record["time_us"], record.get("gain_over_default")  # without: no time of the default
    slowest = slowest_times().get(key_of(kernel, flat(problem)))
    winner = " ".join(str(record["configuration"][name]) for name in spec.fields["tunables"])
    share = 100 * roofline_us(spec, problem) / time
    default = [f"{time * gain:.2f}", f"{gain:.2f}"] if gain else ["", ""]
    times = [default[0], f"{time:.2f}", default[1], f"{slowest:.2f}" if slowest else ""]
    return [label(problem), *times, f"{share:.0f} %", winner]


def by_shape(kernel):
    spec, own = spec_of(kernel), records().get(kernel, [])
    if not own:
        return "## Measured, shape by shape\n\nThe shipped table has no record of this kernel yet."
    winners = {tuple(record["configuration"].values()) for record in own}
    days = sorted({record["measured_at"][:10] for record in own})
    drivers = ", ".join(sorted({record["driver"] for record in own}))
    toolchains = ", ".join(sorted({record["toolchain"]["name"] for record in own}))
    head = ["problem", "default, µs", "tuned, µs", "gain", "slowest, µs", "roofline", "winner"]
    return f"""## Measured, shape by shape

The shipped table of the H200: {len(own)} problems, {len(winners)} different winners, measured {" and ".join(days)} (driver {drivers}, {toolchains}).
[How to read this table](../kernel-library.md#measured). The winner's tunables are {", ".join(spec.fields["tunables"])}.

{table(head, [shape_row(spec, record) for record in own])}"""


def compared_with_libraries(kernel, notes):
    lines = comparisons().get(kernel, [])
    paragraphs = [f"For the same result PyTorch has {spec_of(kernel).fields['baseline']}."]
    if "Speed" in notes.sections:
        paragraphs.append(notes.sections["Speed"])
    if lines:
        paragraphs.append(COMPARISON)
        paragraphs.append(comparison_table(kernel, lines))
    return "\n\n".join(["## Compared with libraries", *paragraphs])


def comparison_table(kernel, lines):
    times = [
        {"cubind": line["kernel_time_us"]["cubind"], **side_times(line), **own_times(line)} for line in lines
    ]
    columns = [side for side in ("cubind", *SIDES, *OWN) if any(side in each for each in times)]
    rows = [
        [
            label(structured(kernel, line["problem"])),
            *(f"{each[side]:.2f}" if side in each else "" for side in columns),
        ]
        for line, each in zip(lines, times, strict=True)
    ]
    return table(["problem", *columns], rows)


def own_times(line):
    times = line["kernel_time_us"]
    return {name: times[key] for name, key in OWN.items() if key in times}


# --- tables of the overview ---


def span(values):
    low, high = (f"{pick(values):.2f}" for pick in (min, max))
    return low if low == high else f"{low} to {high}"


def overview_row(kernel):
    own = records().get(kernel, [])
    gains = [record["gain_over_default"] for record in own if record.get("gain_over_default")]
    lines = comparisons().get(kernel, [])
    cells = []
    for side in SIDES:
        ratios = [
            side_times(line)[side] / line["kernel_time_us"]["cubind"]
            for line in lines
            if side in side_times(line)
        ]
        cells.append(span(ratios) if ratios else "")
    page = f"[`{kernel}`](library/{kernel}.md)"
    gain = f"{geometric_mean(gains):.2f}, {max(gains):.2f}" if gains else ""
    return [page, str(len(own)), gain, *cells]


def overview(kernels):
    head = ["kernel", "problems", "gain: mean, largest", *(f"over {side}" for side in SIDES)]
    return table(head, [overview_row(kernel) for kernel in kernels])


def faster_elsewhere(kernels):
    """Problems that another side computes in less time than cubind, by more than half a percent."""
    rows = []
    for kernel in kernels:
        for line in comparisons().get(kernel, []):
            own = line["kernel_time_us"]["cubind"]
            faster = {side: time for side, time in side_times(line).items() if time < 0.995 * own}
            if faster:
                sides = ", ".join(f"{side} {time:.2f}" for side, time in faster.items())
                rows.append([code(kernel), label(structured(kernel, line["problem"])), f"{own:.2f}", sides])
    return table(["kernel", "problem", "cubind, µs", "faster, µs"], rows)


def runs():
    """What the comparisons were measured with."""
    found = {}
    for lines in comparisons().values():
        for line in lines:
            run = line["run"]
            found[run["date"]] = (
                f"{run['device']}, driver {run['driver']}, NVRTC {run['nvrtc']}, PyTorch {run['torch']}, "
                f"Triton {run['triton']}, commit {run['commit']}, {run['date'][:10]}"
            )
    return "; ".join(dict.fromkeys(found[date] for date in sorted(found)))
