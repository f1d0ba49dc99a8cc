"""Checks that links of pages lead to files and headings that exist, and ARCHITECTURE.md names only paths that
exist.

    python dev.d/links.py [PACKAGE]

Of an unpacked package it checks the links, and that each page exists which a program names as "docs/PAGE.md",
in its --help for example. Prints FILE:LINE and what is missing; exit status 1 if anything is.
"""

import pathlib
import re
import sys

from words import tracked

ROOT = pathlib.Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(r"`(\.?[a-z_][\w.]*/[\w./-]*)`")
NAMED = re.compile(rb"\bdocs/[\w/-]+\.md\b")


def blanked(pattern, text):
    """The text without the matches, its lines where they were."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def anchors(text):
    """The headings' anchors as GitHub makes them; the second of the same name ends in -1."""
    found = []
    for heading in re.findall(r"^#+ +(.*?) *$", blanked(FENCE, text), re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        repeated = sum(1 for earlier in found if re.fullmatch(re.escape(anchor) + r"(-\d+)?", earlier))
        found.append(f"{anchor}-{repeated}" if repeated else anchor)
    return set(found)


def broken_link(page, link):
    """What is missing behind the link; empty: nothing."""
    if re.match(r"[a-z]+:", link):
        return ""
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    if not target.exists():
        return f"{link}: no such file"
    if anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
        return f"{link}: no such heading"
    return ""


def exists(root, path):
    """A folder, a file, or a file without its extension."""
    return (root / path).exists() or any((root / path).parent.glob(f"{pathlib.PurePath(path).name}.*"))


def findings(page, root=None):
    """Line and fault, in order. root: of a tree whose ARCHITECTURE.md names its paths."""
    text = blanked(FENCE, page.read_text())
    prose = blanked(CODE, text)
    found = [(match.start(), broken_link(page, match.group(1))) for match in LINK.finditer(prose)]
    if root and page.name == "ARCHITECTURE.md":
        for match in PATH.finditer(text):
            path = match.group(1)
            if (root / path.split("/")[0]).is_dir() and not exists(root, path):
                found.append((match.start(), f"{path}: no such file or folder"))
    return [(text.count("\n", 0, at) + 1, fault) for at, fault in sorted(found) if fault]


def package_findings(package, modules=()):
    """The broken links of a package's pages, and the missing pages that its programs and `modules` name."""
    for page in sorted(package.rglob("*.md")):
        name = page.relative_to(package)
        # The Markdown of variants/ is text for the generated pages of docs/library, where its links begin.
        if name.parts[0] != "variants":
            yield from (f"{name}:{line}: {fault}" for line, fault in findings(page))
    for file in [*sorted(package.glob("bin/*")), *modules]:
        for page in sorted(set(NAMED.findall(file.read_bytes()))):
            if not (package / page.decode()).is_file():
                yield f"{file.name}: names {page.decode()}: no such file"


def tree_findings():
    """Of the pages of this tree."""
    for name in tracked():
        if name.endswith(".md") and not name.startswith("variants/") and (ROOT / name).is_file():
            yield from (f"{name}:{line}: {fault}" for line, fault in findings(ROOT / name, ROOT))


def main(arguments):
    found = [*(package_findings(pathlib.Path(arguments[0])) if arguments else tree_findings())]
    print("".join(f"{fault}\n" for fault in found), end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
