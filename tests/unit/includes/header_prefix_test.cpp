#include "tuner/includes/header_prefix.hpp"

#include <catch2/catch.hpp>

namespace cubind::test {
namespace {

std::string prefix_of(const std::string& source, const std::vector<std::string>& names = {}) {
  return source.substr(0, header_prefix(source, names));
}

}  // namespace

TEST_CASE("a prefix ends behind the last include or macro before the first declaration") {
  const std::string head = "// A /* comment.\n\n#define A 1\n#include <a.h>  // why\n#pragma once\n";
  CHECK(prefix_of(head + "int x;\n#include <b.h>\n") == head);
  CHECK(prefix_of(head + "\n// more\n") == head);
  CHECK(prefix_of(head + "#include <b.h>") == head);
  CHECK(prefix_of("#define A 1\nint x;\n") == "");
  CHECK(prefix_of("") == "");
}

TEST_CASE("a prefix is outside of every condition") {
  const std::string guarded = "#ifdef A\n#include <a.h>\n#else\n#include <b.h>\n#endif\n";
  CHECK(prefix_of(guarded + "#if B\n#include <c.h>\nint x;\n#endif\n") == guarded);
  CHECK(prefix_of("#ifndef GUARD\n#include <a.h>\nint x;\n#endif\n") == "");
}

TEST_CASE("a prefix ends before a name that configurations define") {
  const std::string head = "#include <a.h>\n";
  const std::string defaults = "#ifndef BLOCK\n#define BLOCK 64\n#endif\n#include <b.h>\n";
  CHECK(prefix_of(head + defaults, {"BLOCK"}) == head);
  CHECK(prefix_of(head + defaults, {"BLOC", "LOCK"}) == head + defaults);
  CHECK(prefix_of(head + "#include BLOCK\n", {"BLOCK"}) == head);
}

TEST_CASE("a prefix ends before what only a preprocessor reads rightly") {
  const std::string head = "#include \"a.h\"\n";
  for (const char* line : {"#define S \"/*\"\n", "#error don't\n", "#define A \\\n 1\n", "#define A ?\?/\n",
                           "#line 7\n", "%:include <b.h>\n", "#define R R\"(\n)\"\n"}) {
    CHECK(prefix_of(head + line + "#include <c.h>\n") == head);
  }
}

TEST_CASE("a comment over several lines ends no prefix, and a prefix never ends in one") {
  const std::string head = "/* first\n#include <no.h>\n*/ #include <a.h>\n";
  CHECK(prefix_of(head + "int x;\n") == head);
  CHECK(prefix_of(head + "#include <b.h> /* and\n\n*/ int x;\n") == head);
  CHECK(prefix_of(head + "#include <b/*.h>\nint x;\n") == head);
  CHECK(prefix_of(head + "/* open\n") == head);
}

}  // namespace cubind::test
