"""Which parameters a kernel writes through, by the PTX that this machine's NVRTC makes of it.

NVRTC runs in a process of its own, which is this file as a program: a source may be its end.
"""

from __future__ import annotations

import ctypes
import glob
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence

_TIMEOUT = 60.0  # seconds
_WRITES = re.compile(r"(st|atom|red|multimem|cp)\b")
_READ = -1  # stands for what may be a pointer that was read from memory
_ADDRESS = re.compile(r"\[\s*([^\]\s+]+)[^\]]*\]")


def written_parameters(
    path: str, files: Mapping[str, str], entry: str, options: Sequence[str], pointers: Sequence[int]
) -> frozenset[int] | None:
    """The numbers of those among `pointers`. None: there is no NVRTC, it does not compile the source `path`
    of the files, or the PTX does not tell."""
    packages = sorted({each for folder in sys.path for each in glob.glob(f"{folder}/nvidia/*")})
    homes = [os.environ.get("CUBIND_CUDA_HOME", ""), "/usr/local/cuda", *packages]
    libraries = [file for home in homes if home for file in glob.glob(f"{home}/lib*/libnvrtc.so*")]
    if not libraries:
        return None
    given = ["--gpu-architecture=compute_90", *options, *(f"-I{home}/include" for home in homes if home)]
    headers = {name: text for name, text in files.items() if name != path}
    asked = json.dumps([libraries[0], path, files[path], headers, entry, given])
    # NVRTC looks for a second library by its name alone.
    environment = {**os.environ, "LD_LIBRARY_PATH": os.path.dirname(libraries[0])}
    try:
        done = subprocess.run(
            [sys.executable, "-I", __file__],
            input=asked.encode(),
            env=environment,
            capture_output=True,
            timeout=_TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        return None
    return written(*json.loads(done.stdout), pointers) if done.returncode == 0 else None


def written(ptx: str, symbol: str, pointers: Sequence[int]) -> frozenset[int] | None:
    form = rf"\.entry\s+{re.escape(symbol)}\s*\((.*?)\)[^{{]*{{(.*?)(?=^\.(?:visible|entry|func|weak)\b|\Z)"
    entry = re.search(form, ptx, re.DOTALL | re.MULTILINE)
    if entry is None:
        return None
    numbers = {f"{symbol}_param_{number}": number for number in pointers}
    instructions = [each for line in re.split(r"[;\n]", entry[2]) if (each := _parts(line))[0]]
    reached: dict[str, frozenset[int]] = {}  # the parameters that a register may be made from
    while _spread(instructions, numbers, reached):
        pass
    found: frozenset[int] = frozenset()
    for operation, operands in instructions:
        spaces = re.findall(r"\.(shared|local|param|global)\b", operation)  # the destination's first
        address = _ADDRESS.search(operands)
        if operation.startswith("call"):
            return None
        if not _WRITES.match(operation) or address is None or (spaces and spaces[0] != "global"):
            continue
        parameters = reached.get(address[1])
        if not parameters or _READ in parameters:
            return None
        found |= parameters
    return found


def _parts(line: str) -> tuple[str, str]:
    """Operation and operands, without a label or a predicate."""
    line = line.partition("//")[0].replace("\t", " ").strip(" {}")
    operation, _, operands = re.sub(r"^(?:\$?\w+:)?\s*(?:@!?%\w+\s+)?", "", line).partition(" ")
    return ("" if operation.startswith(".") else operation), operands.strip()


def _spread(
    instructions: Sequence[tuple[str, str]], numbers: Mapping[str, int], reached: dict[str, frozenset[int]]
) -> bool:
    """One pass: whether a register was reached by a further parameter."""
    changed = False
    for operation, operands in instructions:
        target, _, sources = operands.partition(",")
        if target.startswith("["):
            continue  # it sets no register
        made: frozenset[int] = frozenset()
        if operation.startswith("ld.param"):
            made = frozenset(numbers[name] for name in _ADDRESS.findall(sources) if name in numbers)
        elif operation.startswith("ld"):
            made = frozenset([_READ] if re.search(r"\.[bsu]64\b", operation) else [])
        else:
            made = made.union(*(reached.get(each, ()) for each in re.findall(r"%\w+", sources)))
        for register in re.findall(r"%\w+", target):
            if not made <= reached.get(register, frozenset()):
                reached[register] = reached.get(register, frozenset()) | made
                changed = True
    return changed


def _compile(
    path: str, text: str, headers: dict[str, str], entry: str, options: list[str], library: str
) -> None:
    """Prints the PTX and the entry's symbol."""
    nvrtc = ctypes.CDLL(library)

    def texts(all_of_them: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
        return (ctypes.c_char_p * len(all_of_them))(*(each.encode() for each in all_of_them))

    def call(name: str, *arguments: object) -> None:
        if getattr(nvrtc, f"nvrtc{name}")(*arguments):
            sys.exit(1)

    program, symbol, size = ctypes.c_void_p(), ctypes.c_char_p(), ctypes.c_size_t()
    included = len(headers), texts([*headers.values()]), texts([*headers])
    call("CreateProgram", ctypes.byref(program), text.encode(), path.encode(), *included)
    call("AddNameExpression", program, entry.encode())
    call("CompileProgram", program, len(options), texts(options))
    call("GetLoweredName", program, entry.encode(), ctypes.byref(symbol))
    call("GetPTXSize", program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    call("GetPTX", program, ptx)
    print(json.dumps([ptx.value.decode(), (symbol.value or b"").decode()]))


if __name__ == "__main__":
    _library, *_asked = json.load(sys.stdin)
    _compile(*_asked, _library)
