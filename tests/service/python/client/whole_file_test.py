"""Files that are written whole or not at all."""

import os
import pathlib
import resource
import tempfile
import threading
import unittest

from cubind import _whole_file


class WholeFile(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "table.json"

    def test_a_file_that_cannot_be_written_is_as_it_was(self):
        self.file.write_text("earlier")
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_FSIZE, before)
        with self.assertRaises(OSError):
            _whole_file.write(self.file, "x" * 1000)
        self.assertEqual(self.file.read_text(), "earlier")
        self.assertEqual(os.listdir(self.folder), ["table.json"])

    def test_a_link_and_the_mode_of_its_file_stay(self):
        self.file.write_text("earlier")
        self.file.chmod(0o640)
        link = self.folder / "link"
        link.symlink_to("table.json")
        _whole_file.write(link, "later \u03bc")
        self.assertTrue(link.is_symlink())
        self.assertEqual(self.file.read_text(encoding="utf-8"), "later \u03bc")
        self.assertEqual(self.file.stat().st_mode & 0o777, 0o640)

    def test_a_pipe_gets_the_text_and_stays_one(self):
        os.mkfifo(self.file)
        got = []
        reader = threading.Thread(target=lambda: got.append(self.file.read_text()))
        reader.start()
        _whole_file.write(self.file, "text")
        reader.join()
        self.assertEqual(got, ["text"])
        self.assertTrue(self.file.is_fifo())
