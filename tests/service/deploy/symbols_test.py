"""The programs load with the glibc that packages and wheels promise."""

import os
import pathlib
import re
import subprocess
import unittest

PROMISED = (2, 34)  # manylinux_2_34_x86_64


def symbols_of(file):
    return subprocess.run(["objdump", "-T", file], check=True, capture_output=True, text=True).stdout


class Symbols(unittest.TestCase):
    def test_no_program_needs_a_newer_glibc(self):
        folder = pathlib.Path(os.environ["CUBIND_PROGRAMS"])
        programs = [folder / name for name in ("cubind", "cubind-agent", "cubind-worker", "cubindctl")]
        for file in (*programs, *folder.parent.glob("lib/libcubind_*.so")):
            with self.subTest(file=file.name):
                needed = re.findall(r"\(GLIBC_(\d+)\.(\d+)[\d.]*\)\s+(\S+)", symbols_of(file))
                self.assertTrue(needed)
                younger = [symbol for major, minor, symbol in needed if (int(major), int(minor)) > PROMISED]
                self.assertEqual(younger, [])

    # A wheel's extension has the C++ runtime in it, whose random_device calls arc4random() of glibc 2.36.
    def test_the_extension_needs_no_newer_glibc_with_the_runtime_in_it(self):
        extension = pathlib.Path(os.environ["CUBIND_PROGRAMS"]).parent / "python/cubind/_core.abi3.so"
        self.assertNotIn("random_device", symbols_of(extension))


if __name__ == "__main__":
    unittest.main()
