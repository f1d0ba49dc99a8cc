"""What was measured of compiled steps, in files. Needs torch."""

import concurrent.futures
import tempfile
import unittest
from unittest import mock

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
from cubind.torch import _compiled_kept as kept

KEY = {"model": "of this test"}
TIMES = {"loss": (True, 1.0, 2.0)}


class Kept(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(mock.patch.dict("os.environ", XDG_CACHE_HOME=folder))

    def test_a_damaged_answer_is_none(self):
        kept.write(KEY, TIMES)
        file = kept.file_of(KEY)
        whole = file.read_bytes()
        self.assertEqual(kept.read(KEY), TIMES)
        for content in (b"", whole[:-9], b"\xff", b"[]", b'{"kinds": {"loss": [true, 1]}}', b"[" * 100_000):
            file.write_bytes(content)
            self.assertIsNone(kept.read(KEY))

    def test_processes_that_write_at_once_leave_a_whole_answer(self):
        with concurrent.futures.ProcessPoolExecutor(4) as pool:
            list(pool.map(kept.write, [KEY] * 100, [TIMES] * 100))
        self.assertEqual(kept.read(KEY), TIMES)
        self.assertEqual(len([*kept.file_of(KEY).parent.iterdir()]), 1)
