"""Daemon threads of a program that are within the extension, without the GIL, when the process ends."""

import unittest

import running

PROGRAM = """
import threading
from cubind import _core

begun = threading.Event()

def run():
    while True:
        _core.gpu()
        begun.set()

for _ in range(4):
    threading.Thread(target=run, daemon=True).start()
begun.wait()
print("ends")
"""


class Exit(unittest.TestCase):
    def test_they_do_not_bring_it_down(self):
        for _ in range(3):
            self.assertEqual(running.run_python(PROGRAM), "ends\n")
