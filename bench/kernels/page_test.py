"""bench/kernels/page.py: records that the shipped table may have."""

import unittest
from unittest import mock

import page_results

KERNEL = "vector_add"


class Records(unittest.TestCase):
    def test_a_record_whose_default_has_no_time_is_shown_without_its_gain(self):
        first, *others = page_results.records()[KERNEL]
        known = {KERNEL: [{key: first[key] for key in first if key != "gain_over_default"}, *others]}
        with mock.patch.object(page_results, "records", return_value=known):
            rows = page_results.by_shape(KERNEL).splitlines()
            (row,) = (row for row in rows if row.startswith(f"| {page_results.label(first['problem'])} |"))
            _, default, tuned, gain, *_ = (cell.strip() for cell in row.strip("|").split("|"))
            self.assertEqual((default, tuned, gain), ("", f"{first['time_us']:.2f}", ""))
            self.assertEqual(page_results.overview_row(KERNEL)[1], str(1 + len(others)))
