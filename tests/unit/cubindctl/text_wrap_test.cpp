#include "client/cubindctl/terminal/text_wrap.hpp"

#include <catch2/catch.hpp>

namespace cubind::ctl {

TEST_CASE("a text that fits is one line") {
  CHECK(wrapped("one two", 7) == "one two");
  CHECK(wrapped("one two three", 0) == "one two three");
}

TEST_CASE("a line is broken behind a word and the next is indented") {
  CHECK(wrapped("one two three four", 10) == "one two\n    three\n    four");
  CHECK(wrapped("one two three four", 14, "> ") == "one two three\n>     four");
}

TEST_CASE("a long list without spaces is broken behind a comma") {
  CHECK(wrapped("best A=1,B=2,C=3,D=4", 12) == "best A=1,\n    B=2,C=3,\n    D=4");
}

TEST_CASE("text that begins further right goes on there") {
  CHECK(wrapped_under("one two three", 8, "    ") == "one two\n    three");
  CHECK(wrapped_under("one two three", 0, "    ") == "one two three");
}

TEST_CASE("what has no place to break stays whole") {
  CHECK(wrapped("abcdefghijklmnop qr", 10) == "abcdefghijklmnop\n    qr");
}

}  // namespace cubind::ctl
