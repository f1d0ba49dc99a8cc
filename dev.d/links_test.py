"""What counts as a broken link of a page. ./dev lint runs these tests."""

import pathlib
import tempfile
import unittest

import links


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "server").mkdir()
        (self.root / "server/daemon.cpp").touch()
        (self.root / "other.md").write_text("# Two words: `code`\n## Again\n## Again\n```\n# not one\n```\n")

    def faults(self, text, name="page.md"):
        page = self.root / name
        page.write_text(text)
        return links.findings(page, self.root)

    def test_a_link_leads_to_a_file_and_its_heading(self):
        self.assertEqual(
            self.faults("[a](other.md) [b](other.md#two-words-code) [c](server/daemon.cpp)\n"), []
        )
        self.assertEqual(self.faults("\n[a](none.md)\n"), [(2, "none.md: no such file")])
        self.assertEqual(self.faults("[a](other.md#not-one)\n"), [(1, "other.md#not-one: no such heading")])

    def test_a_heading_that_is_repeated_has_a_number(self):
        self.assertEqual(self.faults("[a](other.md#again) [b](other.md#again-1)\n"), [])
        self.assertEqual(len(self.faults("[a](other.md#again-2)\n")), 1)

    def test_a_link_within_the_page_and_one_to_the_web_are_understood(self):
        self.assertEqual(self.faults("# Here\n[a](#here) [b](https://example.org/x#y)\n"), [])
        self.assertEqual(len(self.faults("# Here\n[a](#there)\n")), 1)

    def test_code_has_no_links(self):
        self.assertEqual(self.faults("`a[0](x)`\n```\n[a](none.md)\n```\n"), [])

    def test_the_architecture_names_files_with_or_without_their_extension(self):
        text = "`server/daemon` `server/daemon.cpp` `server/` `grpc/none`\n`server/gone`\n"
        fault = [(2, "server/gone: no such file or folder")]
        self.assertEqual(self.faults(text, "ARCHITECTURE.md"), fault)
        self.assertEqual(self.faults(text, "page.md"), [])

    def test_folders_with_a_dot_in_their_name_are_looked_for_too(self):
        for folder in ("dev.d", ".ci"):
            (self.root / folder).mkdir()
            (self.root / folder / "run").touch()
            fault = f"{folder}/gone: no such file or folder"
            text = f"`{folder}/run` `{folder}/`\n`{folder}/gone`\n"
            self.assertEqual(self.faults(text, "ARCHITECTURE.md"), [(2, fault)])

    def test_a_package_has_what_its_pages_link_to_and_what_its_programs_and_modules_name(self):
        for folder in ("docs", "bin", "variants"):
            (self.root / folder).mkdir()
        (self.root / "docs/tables.md").write_text("[a](../other.md)\n[b](../client/cubind.h)\n")
        (self.root / "variants/notes.md").write_text("[c](none.md)\n")
        (self.root / "bin/cubind").write_bytes(b"\x7fELF\0see docs/tables.md\0see docs/many.md\0")
        module = self.root / "client.py"
        module.write_text("# docs/gone.md\n")
        link = "docs/tables.md:2: ../client/cubind.h: no such file"
        program = "cubind: names docs/many.md: no such file"
        self.assertEqual([*links.package_findings(self.root)], [link, program])
        named = "client.py: names docs/gone.md: no such file"
        self.assertEqual([*links.package_findings(self.root, [module])], [link, program, named])


if __name__ == "__main__":
    unittest.main()
