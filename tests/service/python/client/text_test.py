"""Text that others wrote, as a terminal gets it from Python and from cubindctl."""

import subprocess
import sys
import tempfile
import unicodedata
import unittest

import cubind
import running

UNSEEN = [
    chr(code)
    for code in range(1, sys.maxunicode + 1)
    if unicodedata.category(chr(code)) in ("Cc", "Cf", "Zl", "Zp") and chr(code) not in "\t\n"
]


def printable(text):
    return str(cubind.NotFoundError(text))


class Text(unittest.TestCase):
    def test_what_hides_or_reorders_text_is_escaped_and_the_rest_stays(self):
        self.assertEqual(printable("a\u202egnp.b\x1b[2J\U000e0041"), "a\\u202egnp.b\\u001b[2J\\udb40\\udc41")
        for text in ("rms \u03bc \u0645 \u05d0 \U0001f600", "a\tb\nc", ""):
            self.assertEqual(printable(text), text)

    def test_cubindctl_escapes_the_same_characters(self):
        for at in range(0, len(UNSEEN), 40):
            name = "".join(UNSEEN[at : at + 40])
            command = [running.PROGRAMS / "cubindctl", "table", "check", f"/{name}.json"]
            told = subprocess.run(command, capture_output=True, text=True, check=False).stderr
            self.assertIn(f"/{printable(name)}.json", told)

    def test_a_daemon_escapes_them_in_what_is_wrong_with_its_options(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [running.PROGRAMS / "cubind", "--no-local-agent", "--no-shipped-tables"]
            command += ["--db", f"{folder}/store.db", "--socket", f"{folder}/socket", "--metrics"]
            for metrics in ("x\u202e:1", "127.0.0.1:\u202e"):
                told = subprocess.run([*command, metrics], capture_output=True, text=True, check=False).stderr
                self.assertIn(f"--metrics {printable(metrics)}", told)

    def test_an_error_is_told_with_escapes_and_keeps_its_cause(self):
        error = cubind.NotFoundError("no \u202ekernel", "a\u2066")
        self.assertEqual(str(error), "a\\u2066: no \\u202ekernel")
        self.assertEqual((error.field, error.cause), ("a\u2066", "no \u202ekernel"))
