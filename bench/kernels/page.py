"""The pages of the kernel library: docs/library/KERNEL.md for each kernel, and the tables of
docs/kernel-library.md.

    python3 bench/kernels/page.py [--check]
    python3 bench/kernels/page.py --trials EXPORT

A kernel's page has what its spec says (variants/*/KERNEL.json), the text next to the spec (KERNEL.md, with
links relative to docs/library) and the measurements: variants/tables/nvidia-h200.json, and kernels*.json and
trials.json in bench/results/nvidia-h200. With --check nothing is written; the exit status is 1 if a page
differs from its sources, if the table has other problems than variants/shapes.jsonl, from which it is made,
or if launch_all.py has no problem for a kernel. --trials first updates trials.json from `cubindctl export
--all-trials --samples`, which is too large to be kept. Needs neither torch nor a GPU.
"""

import argparse
import json
import pathlib
import sys

import page_results
import page_spec
from page_results import ROOT, TABLE, flat, key_of, records, spec_of
from page_spec import Notes, PageError
from shapes import ONE_OF_EACH

OVERVIEW = ROOT / "docs" / "kernel-library.md"
PAGES = ROOT / "docs" / "library"
SHAPES = ROOT / "variants" / "shapes.jsonl"
BEGIN, END = "<!-- begin {}: made by bench/kernels/page.py -->\n", "<!-- end {} -->\n"


def kernels():
    found = {}
    for file in ROOT.glob("variants/*/*.json"):
        fields = json.loads(file.read_text())
        if "launches" in fields:
            found[fields["name"]] = file
    return dict(sorted(found.items()))


def page_of(kernel, file):
    spec = spec_of(kernel)
    notes_file = file.with_suffix(".md")
    notes = Notes.read(notes_file, spec)
    source = f"../../{file.relative_to(ROOT)}"
    how = notes.sections.get("How it works")
    sections = [
        f"# {kernel}",
        f"<!-- Made by bench/kernels/page.py. Edit {notes_file.relative_to(ROOT)} or {file.name}. -->",
        notes.introduction,
        page_spec.problem(spec, notes),
        page_spec.arguments(spec),
        *([f"## How it works\n\n{how}"] if how else []),
        page_spec.tunables(spec, notes, source),
        page_spec.launches(spec),
        page_spec.numerics(spec, notes),
        page_results.compared_with_libraries(kernel, notes),
        page_spec.work(spec),
        page_results.by_shape(kernel),
    ]
    return "\n\n".join(sections) + "\n"


def replaced(page, name, text):
    begin, end = BEGIN.format(name), END.format(name)
    if page.count(begin) != 1 or page.count(end) != 1:
        raise PageError(f"{OVERVIEW.relative_to(ROOT)}: expected these lines once:\n{begin}{end}")
    before, rest = page.split(begin)
    return f"{before}{begin}\n{text}\n\n{end}{rest.split(end)[1]}"


def overview_page(names):
    page = OVERVIEW.read_text()
    page = replaced(page, "speed", page_results.overview(names))
    page = replaced(page, "faster", page_results.faster_elsewhere(names))
    return replaced(page, "runs", page_results.runs())


def wanted_pages():
    found = kernels()
    pages = {PAGES / f"{kernel}.md": page_of(kernel, file) for kernel, file in found.items()}
    return {OVERVIEW: overview_page(list(found)), **pages}


def check_shapes():
    """The list and the table have the same problems, and each kernel has one that launch_all.py tunes."""
    if kernels().keys() != ONE_OF_EACH.keys():
        names = sorted(kernels().keys() ^ ONE_OF_EACH.keys())
        raise PageError(f"shapes.py: ONE_OF_EACH and variants/ differ in {names}")
    listed = {key_of(line.pop("kernel"), line) for line in map(json.loads, SHAPES.read_text().splitlines())}
    measured = {
        key_of(record["kernel"], flat(record["problem"])) for each in records().values() for record in each
    }
    for keys, what in ((listed - measured, "has no record of"), (measured - listed, "has a record beyond")):
        if keys:
            kernel, problem = min(keys, key=str)
            raise PageError(
                f"{TABLE.name} {what} {SHAPES.name}: {kernel} {dict(problem)}, {len(keys)} in all"
            )


def check(pages):
    check_shapes()
    stale = [file for file, text in pages.items() if not file.exists() or file.read_text() != text]
    stale += [file for file in PAGES.glob("*.md") if file not in pages]
    if stale:
        names = ", ".join(str(file.relative_to(ROOT)) for file in stale)
        raise PageError(f"{names}: not what the sources give; ./dev format makes them again")


def write(pages):
    PAGES.mkdir(exist_ok=True)
    for file in PAGES.glob("*.md"):
        if file not in pages:
            file.unlink()
    for file, text in pages.items():
        file.write_text(text)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--trials", type=pathlib.Path, metavar="EXPORT", help="an export of all trials")
    arguments = parser.parse_args()
    try:
        if arguments.trials:
            page_results.update_trials(json.loads(arguments.trials.read_text()))
        pages = wanted_pages()
        (check if arguments.check else write)(pages)
    except PageError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
