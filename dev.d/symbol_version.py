"""Binds std::condition_variable::wait to the version that every libstdc++ since GCC 4.4 has.

    symbol_version.py FILE...

GCC 12 gave that function a second version, GLIBCXX_3.4.30, which binds what is linked on Debian 12.
manylinux_2_34 and RHEL 9 end at GLIBCXX_3.4.29. Both versions name the same function. In each file that needs
GLIBCXX_3.4.30 for nothing else, the needed version becomes GLIBCXX_3.4.11. Other files stay unchanged.
"""

import pathlib
import struct
import sys

NEW, OLD = b"GLIBCXX_3.4.30", b"GLIBCXX_3.4.11"  # of one length
WAIT = b"_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE"


class Elf:
    """The sections of a 64-bit little-endian file, by name: (offset, size)."""

    def __init__(self, data):
        self.data = data
        table, entry, count, names = (
            *struct.unpack_from("<Q", data, 0x28),
            *struct.unpack_from("<HHH", data, 0x3A),
        )
        headers = [struct.unpack_from("<IIQQQQ", data, table + i * entry) for i in range(count)]
        start = headers[names][4]
        self.sections = {self.text(start + header[0]): header[4:6] for header in headers}

    def text(self, offset):
        return bytes(self.data[offset : self.data.index(0, offset)])

    def needed_versions(self):
        """(offset of the entry, name's offset, version index) of each needed version."""
        strings = self.sections[b".dynstr"][0]
        library, more = self.sections.get(b".gnu.version_r", (0, 0))[0], True
        while library and more:
            _, _, _, first, more = struct.unpack_from("<HHIII", self.data, library)
            at, step = library + first, 1
            while step:
                _, _, index, name, step = struct.unpack_from("<IHHII", self.data, at)
                yield at, strings + name, index
                at += step
            library += more

    def symbols_of(self, version):
        """The names of the symbols with a version index."""
        strings, (symbols, size) = self.sections[b".dynstr"][0], self.sections[b".dynsym"]
        versions = self.sections[b".gnu.version"][0]
        for i in range(size // 24):
            if struct.unpack_from("<H", self.data, versions + 2 * i)[0] & 0x7FFF == version:
                yield self.text(strings + struct.unpack_from("<I", self.data, symbols + 24 * i)[0])


def elf_hash(name):
    """Of the System V ABI, as entries of needed versions have it."""
    value = 0
    for byte in name:
        value = (value << 4) + byte
        value = (value ^ (value & 0xF0000000) >> 24) & 0x0FFFFFFF
    return value


def bind_to_old(data):
    """Whether `data`, a bytearray with an ELF file, was changed."""
    elf = Elf(data)
    for entry, name, index in elf.needed_versions():
        if elf.text(name) == NEW and set(elf.symbols_of(index)) == {WAIT}:
            data[name : name + len(OLD)] = OLD
            struct.pack_into("<I", data, entry, elf_hash(OLD))
            return True
    return False


def main():
    for file in map(pathlib.Path, sys.argv[1:]):
        data = bytearray(file.read_bytes())
        if bind_to_old(data):
            file.write_bytes(data)


if __name__ == "__main__":
    main()
