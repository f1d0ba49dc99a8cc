"""What a CUDA source says of its kernels without a compiler: names, parameters, included files."""

from __future__ import annotations

import dataclasses
import pathlib
import re
from typing import Any

from .errors import InvalidArgumentError

_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")', re.DOTALL)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
_NO_NAMES = {"__launch_bounds__", "__cluster_dims__", "__maxnreg__", "__attribute__", "alignas"}
_QUALIFIERS = re.compile(
    r"\b(__restrict__|__restrict|restrict|volatile|__grid_constant__|const|struct|std::)|::"
)
_MOST_FILES = 1000

# Elements and scalars, in the words of specs.
_SPELLINGS = {
    "f32": "float",
    "f64": "double",
    "f16": "__half|half",
    "bf16": "__nv_bfloat16|nv_bfloat16",
    "e4m3": "__nv_fp8_e4m3",
    "e5m2": "__nv_fp8_e5m2",
    "bool": "bool",
    "i8": "char|signed char|int8_t",
    "u8": "unsigned char|uint8_t",
    "i16": "short|int16_t",
    "u16": "unsigned short|uint16_t",
    "i32": "int|signed|int32_t",
    "u32": "unsigned|unsigned int|uint|uint32_t",
    "i64": "long|long int|long long|long long int|int64_t|ptrdiff_t",
    "u64": "unsigned long|unsigned long long|uint64_t|size_t",
}
_TYPES = {name: short for short, names in _SPELLINGS.items() for name in names.split("|")}
_VECTOR = re.compile(r"(float|double|int|uint|char|uchar|half|__half)[234]")
_OF_VECTORS = {"uint": "uint", "uchar": "unsigned char"}


@dataclasses.dataclass(frozen=True)
class Parameter:
    """name: "" if the source gives none. type: of the element or the scalar; "" if it is not one of a spec's,
    as a macro or a struct. is_read_only: a pointer to const."""

    name: str
    type: str
    is_pointer: bool
    is_read_only: bool


@dataclasses.dataclass(frozen=True)
class Source:
    """text: of the file itself. files: all of them by their paths, `text` among them at `path`."""

    path: str
    text: str
    files: dict[str, str]

    def kernels(self) -> dict[str, tuple[Parameter, ...]]:
        """The __global__ functions by their names, without those that macros make."""
        found: dict[str, tuple[Parameter, ...]] = {}
        for text in self.files.values():
            found.update(_kernels(text))
        return found

    def parameters(self, entry: str, where: str) -> tuple[Parameter, ...] | None:
        """Those of the function that `entry` names, perhaps with template arguments; None: a macro makes it.
        Raises InvalidArgumentError, with the names of the kernels that there are."""
        name = entry.partition("<")[0].strip().rpartition("::")[2]
        kernels = self.kernels()
        if name in kernels:
            return kernels[name]
        if re.search(rf"\b{re.escape(name)}\b", "\n".join(map(_without_comments, self.files.values()))):
            return None
        there = ", ".join(kernels) or "none"
        raise InvalidArgumentError(
            f'"{entry}" is no __global__ function of the source (it has {there})', where
        )


def read_source(given: Any, name: str, where: str) -> Source:
    """A text, or a file with those of its folder that it includes. Raises InvalidArgumentError, OSError."""
    if isinstance(given, str) and ("\n" in given or "{" in given):
        return Source(f"{name}.cu", given, {f"{name}.cu": given})
    if not isinstance(given, (str, pathlib.PurePath)):
        raise InvalidArgumentError(
            f"is a {type(given).__name__}: the text or the path of a source is meant", where
        )
    path = pathlib.Path(given)
    if not path.is_file():
        raise InvalidArgumentError(f'"{given}" is no file, and no text with a kernel', where)
    files: dict[str, str] = {}
    _add(path.resolve().parent, path.name, files, where)
    return Source(path.name, files[path.name], files)


def _add(folder: pathlib.Path, name: str, files: dict[str, str], where: str) -> None:
    """Reads a file and what it includes of the folder; the compiler says what is missing."""
    try:
        text = (folder / name).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(
            f'"{name}" is not UTF-8: {error.reason} at byte {error.start}', where
        ) from None
    files[name] = text
    for included in _INCLUDE.findall(text):
        for base in (pathlib.PurePosixPath(name).parent, pathlib.PurePosixPath()):
            path = (folder / base / included).resolve()
            if not path.is_file() or not path.is_relative_to(folder):
                continue
            found = path.relative_to(folder).as_posix()
            if found not in files and len(files) < _MOST_FILES:
                _add(folder, found, files, where)
            break


def _without_comments(text: str) -> str:
    return _COMMENT.sub(lambda found: found[1] or " ", text)


def _kernels(text: str) -> dict[str, tuple[Parameter, ...]]:
    text = _without_comments(text)
    found = {}
    for start in re.finditer(r"\b__global__\b", text):
        head = re.compile(r"[^{};]*").match(text, start.end())
        for name in re.finditer(r"(\w+)\s*\(", head[0] if head else ""):
            if name[1] not in _NO_NAMES:
                found[name[1]] = tuple(
                    _parameter(each) for each in _split(text, start.end() + name.end()) if each != "void"
                )
                break
    return found


def _split(text: str, at: int) -> list[str]:
    """What lies between commas, up to the parenthesis that closes the one before `at`."""
    parts, depth = [""], 0
    for character in text[at:]:
        depth += (character in "(<[{") - (character in ")>]}")
        if depth < 0:
            break
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _parameter(text: str) -> Parameter:
    text = text.partition("=")[0].strip()
    declared = text.partition("[")[0]
    pointee, star, rest = declared.rpartition("*")
    words = _QUALIFIERS.sub(" ", rest).split()
    name = words.pop() if words and words[-1].isidentifier() and (star or len(words) > 1) else ""
    words = _QUALIFIERS.sub(" ", pointee.replace("*", " ")).split() if star else words
    type_ = " ".join(words)
    if vector := _VECTOR.fullmatch(type_):
        type_ = _OF_VECTORS.get(vector[1], vector[1])
    is_const = re.search(r"\bconst\b", pointee if star else declared)
    return Parameter(name, _TYPES.get(type_, ""), bool(star) or text.endswith("]"), bool(is_const))
