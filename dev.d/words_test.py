"""What the word list finds, and where. ./dev lint runs these tests."""

import contextlib
import io
import pathlib
import unittest
from unittest import mock

import words


def found(name, text):
    return [(line, turn) for line, turn, _ in words.findings(pathlib.PurePath(name), text)]


class Findings(unittest.TestCase):
    def test_a_comment_and_a_message_are_prose_and_code_is_not(self):
        text = 'int anew = 0;  // counts anew\nthrow Error("nobody asks", anew);\n'
        self.assertEqual(found("a.hpp", text), [(1, "anew"), (2, "nobody")])

    def test_a_word_by_itself_in_quotes_is_a_name(self):
        self.assertEqual(found("a.cpp", 'find("beside");\n'), [])
        self.assertEqual(found("a.py", "sides['beside']\n"), [])

    def test_an_include_and_a_separator_of_digits_hide_nothing(self):
        text = "#include \"a/b.hpp\"\nint most = 10'000;  // for ever\nint n = 1'0;\n"
        self.assertEqual(found("a.cpp", text), [(2, "for ever")])

    def test_a_turn_is_found_across_lines_of_a_comment_and_parts_of_a_message(self):
        self.assertEqual(found("a.hpp", "/// x in the\n  /// place of y\n"), [(1, "in the place of")])
        self.assertEqual(found("a.cpp", 'f("x in the "\n  "place of y");\n'), [(1, "in the place of")])

    def test_words_with_code_between_them_are_no_turn(self):
        self.assertEqual(found("a.cpp", 'f("x at", y, "hand it");\n'), [])

    def test_a_docstring_and_a_comment_of_python_are_prose(self):
        text = 'def f():\n    """Line.\n\n    Made anew."""\n    return 1  # beside it\n'
        self.assertEqual(found("a.py", text), [(4, "anew"), (5, "beside")])

    def test_code_within_a_comment_is_left_out(self):
        self.assertEqual(found("a.hpp", "// `beside` is the view beside it\n"), [(1, "beside")])

    def test_code_on_a_page_is_left_out(self):
        self.assertEqual(found("a.md", "`one a core`\n```\nbeside\n```\nOne a core.\n"), [(5, "One a core")])

    def test_lines_of_a_script_are_prose_and_a_binary_name_is_not(self):
        self.assertEqual(found("dev.d/a.sh", "# the file beside it\n"), [(1, "beside")])
        self.assertEqual(found("a.png", "beside"), [])

    def test_who_begins_a_question_but_no_statement(self):
        self.assertEqual(found("a.md", "Who asks gets an answer.\n"), [(1, "Who")])
        self.assertEqual(found("a.md", "Who asks?\nthe caller who asks\n"), [])

    def test_a_word_of_an_identifier_is_found_in_code_alone(self):
        text = 'int by_place, GpuPlaces;  // in its place\nf("place", replaced, std::in_place);\n'
        self.assertEqual(found("a.cpp", text), [(1, "by_place"), (1, "GpuPlaces")])
        text = "def test_a_place(): pass\nMOST_PLACES = f(placed, places=3)  # no place\n"
        self.assertEqual(found("a.py", text), [(2, "MOST_PLACES")])

    def test_a_better_word_is_not_itself_found(self):
        for _, better in words.WORDS:
            self.assertEqual(found("a.md", better + "\n"), [])


class Run(unittest.TestCase):
    def run_main(self, names, text="nobody asks\n"):
        output = io.StringIO()
        with (
            mock.patch.object(words, "tracked", lambda: names),
            mock.patch.object(pathlib.Path, "is_file", lambda path: True),
            mock.patch.object(pathlib.Path, "read_text", lambda path: text),
            contextlib.redirect_stdout(output),
        ):
            return words.main([]), output.getvalue()

    def test_a_finding_has_its_file_and_line_and_the_better_word(self):
        status, output = self.run_main(["docs/a.md"])
        self.assertEqual(status, 1)
        self.assertRegex(output, r'^docs/a\.md:1: "nobody": name the actor')

    def test_clean_files_and_sources_that_may_not_change_are_in_order(self):
        self.assertEqual(self.run_main(["docs/a.md"], text="no client asks\n"), (0, ""))
        self.assertEqual(
            self.run_main(["variants/a/a.cu", "bench/results/a.md", "schemas/store.sql"]), (0, "")
        )


if __name__ == "__main__":
    unittest.main()
