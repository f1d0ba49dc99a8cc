"""Finds turns that have a plainer equivalent, in pages, help texts, docstrings, comments and messages, and
words of identifiers that do not say what is meant.

    python dev.d/words.py [FILE...]

Prints FILE:LINE: what was found and the better word. Without FILE it reads all our files but SKIPPED. Exit
status 1 if anything was found.
"""

import io
import pathlib
import re
import subprocess
import sys
import tokenize

ROOT = pathlib.Path(__file__).resolve().parents[1]

# Data; this list with its test; and what may not change with its comments: the sources of kernels, because
# shipped tables are keyed by their digests, and the store's schema, which SQLite keeps as its text.
SKIPPED = re.compile(
    r"(bench/results|variants/tables|tests/golden)/|dev\.d/words(_test)?\.py$"
    r"|variants/.*\.cuh?$|schemas/store\w*\.sql$"
)

NUMBER = r"(?:one|two|three|four|five|six|eight|ten|sixteen)"
UNIT = r"(?:core|GPU|SM|second|minute|warp|block|thread|row|lane|tile|stream|agent|launch|problem|element|call|line)"

# A turn as a regular expression, in which a space stands for any white space, and what to write instead.
# Lower case in the turn also matches a capital.
WORDS = [
    (r"anew", "again"),
    (r"beside", "next to, compared with, or in addition to"),
    (r"somebody|nobody|anybody|everybody", "name the actor: a caller, a process, no client, everyone"),
    (r"whoever|whomever", "name the actor: the caller that, a process that, anyone who"),
    (r"(?-i:Who)\b(?![^.?]*\?)", "name the actor: the caller, the process"),
    (r"(?-i:With|In|Of|By|To|From|For|At|On) (?:which|whom)\b(?![^.?]*\?)", "begin with the subject"),
    (r"of the day", "drop it, or current"),
    (r"over the list", "for the list"),
    (r"as [\w']+(?: [\w']+)? ha(?:s|ve) it", "like, or as in"),
    (r"likewise", "also, too, or the words themselves"),
    (r"for ever", "forever"),
    (r"for certain", "certainly, or beyond doubt"),
    (r"at hand", "available, or current"),
    (r"in the place of", "instead of"),
    (r"needs not", "need not"),
    (r"some \d[\d,.]*", "about"),
    (r"of before", "previous, or earlier"),
    (r"lately", "recently"),
    (r"(?:is|are|was|were|been|being|be) told(?! apart)", "is reported, is notified, or gets"),
    (rf"{NUMBER} an? {UNIT}", "per: one per core"),
    (
        rf"(?:threads|bytes|operations|elements|registers|samples|warps) an? {UNIT}",
        "per: 256 threads per block",
    ),
    (r"that there (?:is|are) not", "that does not exist, or unknown"),
    (r"(?:is|are|was|were) not there", "is missing, or does not exist"),
    (r"all the same", "still, or nevertheless"),
    (r"in silence", "silently"),
    (r"a slip of", "a mistake in"),
    (r"(?:thereof|therein|thereby|hereby|whereby|wherein)", "say what it refers to"),
]


# Words of identifiers, and what says more.
NAMES = {
    "place": "where or location (of an error), path, address, index, slot, target",
}
# The field's terms, and names that others have given.
ALLOWED = re.compile(r"in_place|^places$", re.IGNORECASE)  # std, tensors; unittest


def pattern_of(space):
    turns = [turn.replace(" ", space) for turn, _ in WORDS]
    each = "|".join(f"(?P<w{i}>{turn})" for i, turn in enumerate(turns))
    return re.compile(rf"(?<![\w-])(?:{each})(?![\w-])", re.IGNORECASE)


PATTERN = pattern_of(r"\s+")
PERHAPS = pattern_of(r'[\s/*#"-]+')  # finds no less in the whole text, and fast

NAME = re.compile("|".join(NAMES), re.IGNORECASE)

C_LIKE = {".cpp", ".hpp", ".c", ".h", ".cu", ".cuh", ".proto", ".inc"}
WHOLE = {".sh", ".sql", ".cmake", ".txt", ".yaml", ".yml", ".toml"}
WHOLE_NAMES = {"dev", "run", "Dockerfile"}
C_PARTS = re.compile(
    r"(?P<include>^[ \t]*#[ \t]*include[^\n]*)|(?P<comment>//[^\n]*|/\*.*?\*/)"
    r'|R"(?P<tag>\w*)\((?P<raw>.*?)\)(?P=tag)"|(?P<string>"(?:\\.|[^"\\\n])*")|\'(?:\\.[^\']*|[^\'\\\n])\'',
    re.DOTALL | re.MULTILINE,
)
CODE = re.compile(r"`[^`\n]+`|\{\w+\}")  # also a placeholder
MARKS = re.compile(r'(?m)^\s*(?:///?<?|#+|\*|--)|["*]')  # what separates words within a comment or literal


def keep(text, spans):
    """The text with everything outside the spans blanked: lines stay where they are."""
    # What is left out must not look like the space between two words, but quotes and line ends may.
    blank = re.sub(r"[^\s\"]", "\0", text)
    parts, end = [], 0
    for begin, stop in sorted(spans):
        parts += [blank[end:begin], text[begin:stop]]
        end = stop
    text = CODE.sub(lambda code: "\0" * len(code.group()), "".join([*parts, blank[end:]]))
    return MARKS.sub(lambda mark: re.sub(r"[^\n]", " ", mark.group()), text)


def is_prose(literal):
    """A word by itself is a name or a key."""
    return re.search(r"\s", literal) is not None


def prose_of_c(text):
    spans = []
    for part in C_PARTS.finditer(text):
        for name in ("comment", "raw", "string"):
            if part.group(name) and is_prose(part.group(name)):
                spans.append(part.span(name))
    return keep(text, spans)


def prose_of_python(text):
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)}
    spans = [
        (starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1])
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type in kinds and is_prose(token.string)
    ]
    return keep(text, spans)


def prose_of_page(text):
    """Without code: fenced blocks and what stands between backticks."""
    fence = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
    text = fence.sub(lambda block: re.sub(r"[^\n]", "\0", block.group()), text)
    return CODE.sub(lambda code: "\0" * len(code.group()), text)


def prose(path, text):
    """The text's prose at its own places, the rest blanked; None for a file that has none."""
    if path.suffix in C_LIKE:
        return prose_of_c(text)
    if path.suffix == ".py":
        return prose_of_python(text)
    if path.suffix == ".md":
        return prose_of_page(text)
    if path.suffix in WHOLE or path.name in WHOLE_NAMES or path.match("schemas/*.json"):
        return keep(text, [(0, len(text))])
    return None


def identifiers(path, text):
    """(line, name) of a source. A test's name is a sentence."""
    if path.suffix == ".py":
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        names = ((one.start[0], one.string) for one in tokens if one.type == tokenize.NAME)
        return [(line, name) for line, name in names if not name.startswith("test_")]
    if path.suffix not in C_LIKE:
        return []
    code = C_PARTS.sub(lambda part: re.sub(r"[^\n]", " ", part.group()), text)
    lines = enumerate(code.split("\n"), 1)
    return [(line, name) for line, each in lines for name in re.findall(r"[A-Za-z_]\w*", each)]


def named(path, text):
    """The same as findings(), of identifiers."""
    found = []
    for line, name in identifiers(path, text) if NAME.search(text) else []:
        for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", ALLOWED.sub("", name)):
            if better := NAMES.get(word.lower()) or NAMES.get(word.lower().removesuffix("s")):
                found.append((line, name, better))
    return found


def findings(path, text):
    """Line, words and the better ones, of each turn that the text should not have."""
    found = named(path, text)
    if not PERHAPS.search(text):
        return found
    for match in PATTERN.finditer(prose(path, text) or ""):
        line = text.count("\n", 0, match.start()) + 1
        found.append((line, " ".join(match.group().split()), WORDS[int(match.lastgroup[1:])][1]))
    return found


def tracked():
    """Our files from the root: those of git, or without git all but what is built."""
    command = ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode == 0:
        return [name for name in run.stdout.split("\0") if name]
    names = [path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file()]
    return [str(name) for name in names if name.parts[0] not in ("build", ".deps", "dist")]


def report(name):
    path = ROOT / name
    if not path.is_file():
        return 0
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        return 0
    found = findings(pathlib.PurePath(name), text)
    for line, words, better in found:
        print(f'{name}:{line}: "{words}": {better}')
    return len(found)


def main(arguments):
    names = arguments or [name for name in tracked() if not SKIPPED.match(name)]
    return 1 if sum([report(name) for name in names]) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
