"""Holds a wheel of cubind against what its name promises.

    check_wheel.py WHEEL

The platform: `auditwheel show` must find no newer tag than the name has, so that every binary loads with the
glibc and the C++ runtime of that platform. The Python: the extension must need no symbol that is younger than
the CPython in the name. The programs and their libraries must find every function where LD_LIBRARY_PATH has a
libstdc++ that cannot be loaded. The pages: those that programs and modules name, and those that they link to,
come with it. The size: pip installs it in seconds.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

import abi3info
import links
from abi3info.models import PyVersion, Symbol
from elftools.elf.elffile import ELFFile

MAX_MIB = 60
# Part of the limited API since 3.11, exported unchanged by every 3.x before.
OLDER_THAN_THE_LIMITED_API = {"PyObject_GetBuffer", "PyBuffer_Release"}


def audited_platform(wheel):
    """manylinux_2_34_x86_64: the oldest platform that auditwheel finds the wheel good for."""
    command = [sys.executable, "-m", "auditwheel", "show", wheel]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return re.search(r'following\s+platform\s+tag:\s+"(\w+)"', shown)[1]


def needed_symbols(library):
    with library.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".dynsym").iter_symbols()
        return {symbol.name for symbol in symbols if symbol["st_shndx"] == "SHN_UNDEF"}


def younger_symbols(library, minor):
    """What the library needs of CPython that 3.`minor` does not have, as far as the limited API tells."""
    found = []
    for name in needed_symbols(library) - OLDER_THAN_THE_LIMITED_API:
        if re.match("_?Py", name):
            known = abi3info.FUNCTIONS.get(Symbol(name)) or abi3info.DATAS.get(Symbol(name))
            if known is None or known.added > PyVersion(3, minor):
                found.append(name)
    return sorted(found)


def unpack(wheel, folder):
    """As pip does: zipfile alone forgets which files are programs."""
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            path = archive.extract(entry, folder)
            if entry.external_attr >> 16:
                os.chmod(path, entry.external_attr >> 16)


def start_error(program, folder):
    """Why a program does not start where LD_LIBRARY_PATH has a broken libstdc++: the loader's message, for a
    library that lacks a function too, or the signal that ends it."""
    broken = folder / "broken"
    broken.mkdir(exist_ok=True)
    (broken / "libstdc++.so.6").write_text("no library")
    environment = {"LD_LIBRARY_PATH": str(broken), "LD_BIND_NOW": "1"}
    result = subprocess.run([program, "--help"], env=environment, capture_output=True, text=True)
    if result.returncode < 0:
        return f"signal {-result.returncode} ends it: {result.stderr}"
    return result.stderr if re.search("error while loading|symbol lookup error", result.stderr) else ""


def faults(wheel, folder):
    """A sentence for each broken promise."""
    _, _, python, _, platform = wheel.stem.split("-")
    audited = audited_platform(wheel)
    if audited != platform:
        yield f"auditwheel says {audited}, the name {platform}: `auditwheel show -v {wheel}` names the symbols"
    unpack(wheel, folder)
    extension = folder / "cubind" / "_core.abi3.so"
    for name in younger_symbols(extension, int(python.removeprefix("cp3"))):
        yield f"{extension.name} needs {name}, which the limited API has only after {python}"
    for program in sorted((folder / "cubind/_programs/bin").iterdir()):
        error = start_error(program, folder)
        if error:
            yield f"{program.name} does not start with another libstdc++ in LD_LIBRARY_PATH: {error.strip()}"
    yield from links.package_findings(folder / "cubind/_programs", (folder / "cubind").rglob("*.py"))
    mib = wheel.stat().st_size / 2**20
    if mib > MAX_MIB:
        yield f"it has {mib:.0f} MiB, more than {MAX_MIB}"


def main():
    wheel = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        found = list(faults(wheel, pathlib.Path(folder)))
    for fault in found:
        print(f"{wheel}: {fault}", file=sys.stderr)
    if not found:
        print(f"{wheel}: {wheel.stat().st_size / 2**20:.0f} MiB", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
