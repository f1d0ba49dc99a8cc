"""The sections of a kernel's page that come from its spec, and from the hand-written text next to it."""

import dataclasses
import re

FLAG_LINE = re.compile(r"- `(\w+)`: (.+)")
SECTIONS = {"How it works", "Flags and tunables", "Numerics", "Speed"}


class PageError(Exception):
    """What is wrong in a source of a page, and where."""


@dataclasses.dataclass
class Notes:
    """The text next to a spec: an introduction, sections, and a line for each flag and tunable."""

    introduction: str
    sections: dict
    words: dict

    @staticmethod
    def read(file, spec):
        name = f"{file.parent.name}/{file.name}"
        if not file.exists():
            raise PageError(f"{name} is missing: it introduces the kernel and explains its tunables")
        head, *parts = re.split(r"^## (.+)\n", file.read_text(), flags=re.MULTILINE)
        sections = {title: text.strip() for title, text in zip(parts[::2], parts[1::2], strict=True)}
        if unknown := sections.keys() - SECTIONS:
            raise PageError(f"{name}: the section {min(unknown)!r} is not one of {sorted(SECTIONS)}")
        words = Notes._words(name, sections.pop("Flags and tunables", ""))
        wanted = {*spec.fields["tunables"], *spec.fields["problem"].get("flags", {})}
        if wanted != words.keys():
            raise PageError(
                f"{name}, Flags and tunables: these differ from the spec: {sorted(wanted ^ words.keys())}"
            )
        return Notes(head.strip(), sections, words)

    @staticmethod
    def _words(name, text):
        words = {}
        for line in text.splitlines():
            found = FLAG_LINE.fullmatch(line)
            if not found or found[1] in words:
                raise PageError(f"{name}: expected one line '- `NAME`: text' for each name, not {line!r}")
            words[found[1]] = found[2]
        return words


def cell(text):
    return str(text).replace("|", "\\|").replace("<", "&lt;")


def code(text):
    return f"`{text}`".replace("|", "\\|")


def table(head, rows):
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def listed(values):
    return ", ".join(str(value) for value in values)


def dim_values(spec, name, bucket):
    if name in spec.fields.get("specialize", []):
        how = "compiled in"
    elif bucket == "pow2":
        how = "buckets end at powers of two"
    elif isinstance(bucket, dict):
        how = f"buckets end at {listed(bucket['edges'])}"
    else:
        how = "each value by itself"
    return f"from {spec.least(name)}; {how}"


def problem(spec, notes):
    fields = spec.fields["problem"]
    buckets = fields.get("bucket", {})
    rows = []
    for name, described in fields["dims"].items():
        meaning = described["description"] if isinstance(described, dict) else described
        rows.append([code(name), "dim", dim_values(spec, name, buckets.get(name)), cell(meaning)])
    for name, types in fields["types"].items():
        rows.append([code(name), "type", listed(types), "element type"])
    for name, default in fields.get("flags", {}).items():
        rows.append([code(name), "flag", f"default {default}", notes.words[name]])
    return "## Problem\n\n" + table(["name", "kind", "values", "meaning"], rows)


ROLES = {
    "in": "read",
    "out": "written",
    "inout": "read and written",
    "zero": "zeroed by the caller",
    "scratch": "scratch: memory of the caller's, with any content",
}


def buffer(name, described):
    shape = described.get("shape")
    size = code(f"[{', '.join(shape)}]") if shape else f"{code(described['extent'])} elements"
    return [code(name), described["buffer"], size, ROLES[described["role"]]]


def arguments(spec):
    """The arguments that a caller passes; the others are computed from the problem."""
    found = spec.fields["arguments"]
    rows = [buffer(name, described) for name, described in found.items() if "buffer" in described]
    for name, described in found.items():
        if described.get("from") == "caller":
            rows.append([code(name), described["scalar"], "scalar", "read"])
    return "## Arguments\n\n" + table(["name", "type", "shape", "use"], rows)


def tunables(spec, notes, source):
    rows = [
        [code(name), listed(values), notes.words[name]] for name, values in spec.fields["tunables"].items()
    ]
    constraints = "\n".join(spec.fields["constraints"])
    return f"""## Tunables

{table(["name", "values", "meaning"], rows)}

A configuration is valid for a problem if each of these expressions is true. The first valid one of the {len(spec.fields["default"])} defaults in
[the spec]({source}) is served before anything is measured.

```
{constraints}
```"""


def launches(spec):
    rows = []
    for launch in spec.fields["launches"]:
        name = launch["entry"].split("<")[0]
        axes = [", ".join(launch[axis]) for axis in ("grid", "block")]
        rows.append([code(name), *map(code, axes), code(launch.get("shared_bytes", "0"))])
    text = "## Launches\n\n" + table(["kernel", "grid", "block", "shared memory, bytes"], rows)
    left_out = "\n\nA launch with a zero in its grid is left out."
    return text + (left_out if any("0" in re.findall(r"\w+", row[1]) for row in rows) else "")


def bound(value):
    if not isinstance(value, dict):
        return f"{value:g}"
    if "times" in value:
        return f"{value['factor']:g} · {code(value['times'])}"
    return f"{value['factor']:g} · sqrt({code(value['sqrt'])})"


def tolerance(spec):
    fields = dict(spec.fields["tolerance"])
    named = fields.pop("outputs", {})
    rows = []
    for output, types in [("", fields), *named.items()]:
        for dtype, bounds in types.items():
            label = code(output) if output else "others" if named else "all"
            rows.append([label, dtype, bound(bounds["rtol"]), bound(bounds["atol"])])
    return table(["output", "type", "rtol", "atol"], rows)


def numerics(spec, notes):
    text = notes.sections.get("Numerics")
    paragraphs = [text] if text else []
    paragraphs.append("Every element satisfies `|out - ref| <= atol + rtol * |ref|`:")
    return "\n\n".join(["## Numerics", *paragraphs, tolerance(spec)])


def work(spec):
    fields = spec.fields["work"]
    return f"""## Work

The share of the roofline below counts these bytes and floating-point operations:

```
bytes = {fields["bytes"]}
flops = {fields["flops"]}
```"""
