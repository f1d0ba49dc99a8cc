"""The programs load with the glibc that packages and wheels promise."""

import os
import pathlib
import re
import subprocess
import unittest

PROMISED = (2, 34)  # manylinux_2_34_x86_64


class Symbols(unittest.TestCase):
    def test_no_program_needs_a_newer_glibc(self):
        folder = pathlib.Path(os.environ["CUBIND_PROGRAMS"])
        programs = [folder / name for name in ("cubind", "cubind-agent", "cubind-worker", "cubindctl")]
        for file in (*programs, *folder.parent.glob("lib/libcubind_*.so")):
            with self.subTest(file=file.name):
                table = subprocess.run(
                    ["objdump", "-T", file], check=True, capture_output=True, text=True
                ).stdout
                needed = re.findall(r"\(GLIBC_(\d+)\.(\d+)[\d.]*\)\s+(\S+)", table)
                self.assertTrue(needed)
                younger = [symbol for major, minor, symbol in needed if (int(major), int(minor)) > PROMISED]
                self.assertEqual(younger, [])


if __name__ == "__main__":
    unittest.main()
