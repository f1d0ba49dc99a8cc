#include "tuner/includes/include_scan.hpp"

#include <catch2/catch.hpp>

using cubind::IncludeReference;
using cubind::scan_includes;
using Kind = IncludeReference::Kind;

namespace {

// The names that are found, "<...>" for angled ones, "?NAME" for those by macro.
std::vector<std::string> names(std::string_view text) {
  std::vector<std::string> result;
  for (const IncludeReference& reference : scan_includes(text).references) {
    result.push_back(reference.by_macro ? "?" + reference.name
                     : reference.angled ? "<" + reference.name + ">"
                                        : reference.name);
  }
  return result;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("quoted and angled includes are found with their lines and places") {
  const std::string text = "#include \"a.h\"\n\n  #  include <b/c.h> // x\n";
  const auto references = scan_includes(text).references;
  REQUIRE(references.size() == 2);
  CHECK(references[0].name == "a.h");
  CHECK(references[0].line == 1);
  CHECK(references[1].angled);
  CHECK(references[1].line == 3);
  CHECK(text.substr(references[1].begin, references[1].end - references[1].begin) == "b/c.h");
}

TEST_CASE("an include counts whatever #if says") {
  CHECK(names("#if 0\n#include \"a.h\"\n#else\n#include \"b.h\"\n#endif\n") == Names{"a.h", "b.h"});
}

TEST_CASE("comments and literals hide includes") {
  CHECK(names("/* \n#include \"a.h\"\n*/\n").empty());
  CHECK(names("// \\\n#include \"a.h\"\n").empty());
  CHECK(names("const char* s = \"\\\"\\\n#include \\\"a.h\\\"\";\n").empty());
  CHECK(names("auto s = R\"x(\n#include \"a.h\"\n)\" )x\";\n#include \"b.h\"\n") == Names{"b.h"});
  CHECK(names("auto s = u8R\"(\n#include \"a.h\"\n)\";\n").empty());
  CHECK(names("x; #include \"a.h\"\n").empty());
}

TEST_CASE("what looks like a literal and is none hides nothing") {
  CHECK(names("int a = 1'000;\n#include \"a.h\"\nint b = 2'0;\n") == Names{"a.h"});
  CHECK(names("#if 0\nit's\n#endif\n#include \"a.h\"\n") == Names{"a.h"});
  CHECK(names("auto s = FOOR\"(\";\n#include \"a.h\"\n//)\"\n") == Names{"a.h"});
  CHECK(names("char c = '\"';\n#include \"a.h\"\n") == Names{"a.h"});
  CHECK(names("auto s = \"//\";\n#include \"a.h\" /* \" */\n") == Names{"a.h"});
}

TEST_CASE("line continuations and comments and digraphs in a directive are seen through") {
  CHECK(names("#inc\\\nlude \"a.h\"\n") == Names{"a.h"});
  CHECK(names("#inc\\\r\nlude \"a.h\"\r\n") == Names{"a.h"});
  CHECK(names("%:include \"a.h\"\n") == Names{"a.h"});
  CHECK(names("# /* \n */ include /**/ \"a.h\"\n") == Names{"a.h"});
  CHECK(names("/* x */ #include \"a.h\"\n") == Names{"a.h"});
  CHECK(names("#include \"\\\n/etc/passwd\"\n") == Names{"/etc/passwd"});
}

TEST_CASE("the line of an include behind continuations is the line of its name") {
  const auto references = scan_includes("int \\\n a;\n/*\n\n*/ #inc\\\nlude \"a.h\"\n").references;
  REQUIRE(references.size() == 1);
  CHECK(references[0].line == 6);
}

TEST_CASE("an include by macro is reported with the macro") {
  CHECK(names("#define H \"a.h\"\n#include H\n") == Names{"?H"});
  CHECK(names("#include HEADER(a, b)\n") == Names{"?HEADER"});
  CHECK(names("#include\n") == Names{"?"});
}

TEST_CASE("__has_include counts in directives only") {
  CHECK(names("#if defined(__has_include) && __has_include(<a.h>)\n") == Names{"<a.h>"});
  CHECK(names("#elif __has_include ( \"b.h\" )\n") == Names{"b.h"});
  CHECK(names("#if __has_include(NAME)\n") == Names{"?NAME"});
  CHECK(names("int a = __has_include(\"b.h\");\n").empty());
  CHECK(names("#define HAS(x) __has_include(x)\n").empty());
}

TEST_CASE("include_next and embed are told apart") {
  const auto references = scan_includes("#include_next <a.h>\n#embed \"b\"\n#import \"c\"\n").references;
  REQUIRE(references.size() == 2);
  CHECK(references[0].kind == Kind::IncludeNext);
  CHECK(references[1].kind == Kind::Embed);
}

TEST_CASE("the first trigraph that could hide a directive is reported") {
  CHECK(scan_includes("int a;\n?\?=include \"a.h\"\n").trigraph_line == 2);
  CHECK(scan_includes("int a; // what?\?/\n").trigraph_line == 1);
  CHECK(scan_includes("bool b = a ? ?x : y;\n").trigraph_line == 0);
}

TEST_CASE("texts that end in the middle of something are read to their end") {
  for (const char* text : {"#include \"a.h", "#include <a.h", "#", "%", "\\", "/*", "\"", "R\"(",
                           "#if __has_include(", "'", "#include \"a.h\\", "R\"", "1'"}) {
    CHECK(scan_includes(text).references.size() <= 1);
  }
}

TEST_CASE("macros that may name a file are found and others are not") {
  using cubind::FileMacro;
  const auto macros = scan_includes(
                          "#define A \"a.h\" // c\n# define B <b/c.h>\n#define C /**/ B\n#define N 5\n"
                          "#define F( x ) <f/x/fx>\n#define G(x, y) <x/y>\n#define E\n#define U \"open\n"
                          "#define S(x) #x\n#define O(")
                          .macros;
  CHECK(macros == std::vector<FileMacro>{
                      {"A", "\"a.h\"", ""}, {"B", "<b/c.h>", ""}, {"C", "B", ""}, {"F", "<f/x/fx>", "x"}});
  CHECK(macros.back().value_for("y.h") == "<f/y.h/fx>");
  CHECK(FileMacro{"Q", "\"x\"", "x"}.value_for("y") == "\"x\"");
  CHECK(cubind::file_macro("H=\"x.h\"") == FileMacro{"H", "\"x.h\"", ""});
  CHECK(cubind::file_macro("N=5") == std::nullopt);
  CHECK(cubind::file_macro("N") == std::nullopt);
}
