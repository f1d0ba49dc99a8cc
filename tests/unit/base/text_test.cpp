#include "base/text.hpp"

#include <catch2/catch.hpp>
#include <iomanip>
#include <vector>

namespace cubind {
namespace {

const std::vector<std::string> kNames = {"THREADS", "VECTOR", "ROWS", "N"};

}  // namespace

TEST_CASE("edit distance counts insertions deletions and replacements") {
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "abc") == 0);
  CHECK(edit_distance("abc", "ab") == 1);
}

TEST_CASE("the nearest word is found through slips and case") {
  CHECK(nearest_word("THREDS", kNames) == "THREADS");
  CHECK(nearest_word("vector", kNames) == "VECTOR");
  CHECK(nearest_word("ROW", kNames) == "ROWS");
  CHECK_FALSE(nearest_word("grid", kNames));
  CHECK_FALSE(nearest_word("M", kNames));
  CHECK_FALSE(nearest_word("", kNames));
  CHECK_FALSE(nearest_word(std::string(100000, 'x'), kNames));
}

TEST_CASE("a suggestion names what begins with the word before what is near to it") {
  const std::vector<std::string> kernels = {"rmsnorm_backward", "layernorm", "rmsnorm_forward", "gemsnorm"};
  CHECK(suggestion("rmsnorm", kernels) == ", did you mean \"rmsnorm_backward\" or \"rmsnorm_forward\"?");
  CHECK(suggestion("RMSNORM_F", kernels) == ", did you mean \"rmsnorm_forward\"?");
  CHECK(suggestion("rmsnorm_foward", kernels) == ", did you mean \"rmsnorm_forward\"?");
  CHECK(suggestion("abc", std::vector<std::string>(9, "abcd")).ends_with(", ...?"));
}

TEST_CASE("a suggestion names the nearest word or all that are known") {
  CHECK(suggestion("VECTR", kNames) == ", did you mean \"VECTOR\"?");
  CHECK(suggestion("zzzzz", kNames) == " (known: \"THREADS\", \"VECTOR\", \"ROWS\", \"N\")");
  CHECK(suggestion("zzzzz", std::vector<std::string>(9, "abc")).ends_with(", ...)"));
  CHECK(suggestion("x", {}) == "");
}

TEST_CASE("quoted text shows control characters and is cut") {
  CHECK(quoted("a\"b\\c\n\t\x01") == "\"a\\\"b\\\\c\\n\\t\\u0001\"");
  CHECK(quoted(std::string(200, 'x')) == "\"" + std::string(80, 'x') + "...\"");
  CHECK(quoted(std::string(80, 'x')) == "\"" + std::string(80, 'x') + "\"");
}

TEST_CASE("quoted text is never cut inside a UTF-8 sequence") {
  CHECK(quoted(std::string(79, 'x') + "\xc3\xa9" + "y") == "\"" + std::string(79, 'x') + "...\"");
}

TEST_CASE("text is cut to a number of bytes and never inside a UTF-8 sequence") {
  CHECK(cut_utf8("abc", 3) == "abc");
  CHECK(cut_utf8("abc", 2) == "ab");
  CHECK(cut_utf8("a\xe2\x82\xac", 4) == "a\xe2\x82\xac");
  CHECK(cut_utf8("a\xe2\x82\xac", 3) == "a");
  CHECK(cut_utf8("\xe2\x82\xac", 0) == "");
}

TEST_CASE("every byte that is no part of UTF-8 becomes a question mark") {
  const std::string good = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f";
  CHECK(valid_utf8(good) == good);
  CHECK(valid_utf8("caf\xe9 x") == "caf? x");
  CHECK(valid_utf8("\xe2\x82") == "??");            // cut off
  CHECK(valid_utf8("\xc0\xaf\x80") == "???");       // too long a form and a lone continuation
  CHECK(valid_utf8("\xed\xa0\x80") == "???");       // a surrogate
  CHECK(valid_utf8("\xf4\x90\x80\x80") == "????");  // above 10ffff
  CHECK(valid_utf8("\xf5\xff\xc3\xa9") == "??\xc3\xa9");
}

TEST_CASE("parts are joined with the separator between them") {
  CHECK(join(kNames, ", ") == "THREADS, VECTOR, ROWS, N");
  CHECK(join(std::vector<std::string>{}, ", ") == "");
}

TEST_CASE("control characters are written out and text stays") {
  CHECK(printable("a\tb\r\nc") == "a\tb\r\nc");
  CHECK(printable("\x1b[2J\x07\x7f"
                  "a\rb") == "\\u001b[2J\\u0007\\u007fa\\u000db");
  CHECK(printable(std::string_view("\0", 1)) == "\\u0000");
  CHECK(printable("\xc2\x9b"
                  "31m \xc2\xa0 \xc3\xa9 \xe2\x82\xac") == "\\u009b31m \xc2\xa0 \xc3\xa9 \xe2\x82\xac");
  CHECK(printable("\x9b"
                  "31m \xe2\x82") == "\\u009b31m \\u00e2\\u0082");
}

TEST_CASE("characters that hide or reorder text are written out") {
  CHECK(printable("a\u202egnp.b") == "a\\u202egnp.b");
  CHECK(printable("\u2066x\u2069\u200b\u061c\ufeff") == "\\u2066x\\u2069\\u200b\\u061c\\ufeff");
  CHECK(printable("\u2028\u2029\u0085") == "\\u2028\\u2029\\u0085");
  CHECK(printable("\U000e0041") == "\\udb40\\udc41");
  const std::string visible = "\u2027 \u202f \u0645 \u05d0 \U0001f600 \u00ac\u00ae";
  CHECK(printable(visible) == visible);
}

}  // namespace cubind
