"""The table of python/examples: a mixture of experts, whose integers a measurement makes like those of a
call."""

import json
import unittest

import triton_torch_found  # noqa: F401  first: it looks for a Python with Triton and torch

# isort: split
import running
import triton_stub as stub
from cubind.triton import table as table_module

EXAMPLE = running.SOURCE / "python/examples/moe_table.py"


class Example(unittest.TestCase):
    def setUp(self):
        stub.start()
        self.table = table_module.load(str(EXAMPLE))

    def specs(self, size, block):
        """Of both products, with two configurations."""
        group = [values for values in self.table.candidates_of(size) if values["BLOCK_SIZE_M"] == block][:2]
        return [json.loads(spec.json) for spec in stub.specs_of_row(self.table, size, group)]

    def test_tokens_are_a_permutation_and_experts_ascend(self):
        for spec in self.specs(16, 16):
            arguments = spec["arguments"]
            self.assertEqual(arguments["tokens"]["fill"], "permutation")
            self.assertEqual(arguments["experts"]["fill"], {"iota": {"start": 0, "step": 1}})
            self.assertEqual(arguments["padded"]["fill"], {"constant": 64 * 16})
            self.assertEqual(arguments["c"]["role"], "out")
        (large, _) = self.specs(2048, 64)
        self.assertEqual(large["arguments"]["experts"]["fill"], {"offsets": {"total": 63}})

    def test_the_two_products_are_two_problems(self):
        first, second = self.specs(1, 16)
        self.assertEqual(first["arguments"]["a"]["extent"], 1 * 2048)
        self.assertEqual(second["arguments"]["a"]["extent"], 6 * 1408)
        self.assertNotEqual(first["name"], second["name"])

    def test_each_row_has_few_enough_candidates_for_one_question(self):
        for size in self.table.rows:
            self.assertLess(len(self.table.candidates_of(size)), stub.MOST_CONFIGURATIONS)
