#include "tuner/includes/include_closure.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "base/error.hpp"
#include "tests/support/refusal_of.hpp"

using cubind::CompilerFile;
using cubind::Error;
using cubind::ErrorCode;
using cubind::IncludeClosure;
using cubind::IncludeSearch;
using cubind::SharedFile;
using cubind::ToolkitHeaders;

namespace {

using Files = std::map<std::string, std::string>;

cubind::FileLookup lookup(Files files) {
  return [files = std::move(files)](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    return found == files.end() ? std::nullopt : std::optional(found->second);
  };
}

// Its listing is of files in memory too.
ToolkitHeaders toolkit_of(const Files& files) {
  return ToolkitHeaders(lookup(files), [files](const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& [name, text] : files) {
      if (name.starts_with(folder + "/")) {
        names.push_back(name);
      }
    }
    return names;
  });
}

IncludeClosure closure(Files own, std::vector<std::string> folders = {}, const Files& toolkit = {}) {
  ToolkitHeaders headers = toolkit_of(toolkit);
  IncludeSearch search{.own = lookup(std::move(own)), .header_folders = std::move(folders)};
  search.toolkit = toolkit.empty() ? nullptr : &headers;
  return include_closure("k.cu", search);
}

const CompilerFile& plain(const CompilerFile& file) { return file; }
const CompilerFile& plain(const SharedFile& file) { return *file; }

std::vector<std::string> names(const auto& files) {
  std::vector<std::string> result;
  for (const auto& file : files) {
    result.push_back(plain(file).name);
  }
  return result;
}

const CompilerFile& file(const auto& files, const std::string& name) {
  const auto found = std::ranges::find_if(files, [&](const auto& one) { return plain(one).name == name; });
  REQUIRE(found != files.end());
  return plain(*found);
}

// What is thrown, as "where | cause".
std::string failure(Files own, std::vector<std::string> folders = {}, const Files& toolkit = {}) {
  const auto error = cubind::test::error_of([&] { closure(std::move(own), std::move(folders), toolkit); });
  return error ? error->where() + " | " + error->cause() : "nothing";
}

using Names = std::vector<std::string>;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

}  // namespace

TEST_CASE("the closure is transitive and sorted and ends at a cycle") {
  const auto found = closure({{"k.cu", "#include \"z.h\"\n#include \"a.h\"\n"},
                              {"z.h", "#include \"m.h\"\n"},
                              {"m.h", "#include \"z.h\"\n#include \"m.h\"\n"},
                              {"a.h", ""},
                              {"unused.h", ""}});
  CHECK(names(found.own) == Names{"a.h", "m.h", "z.h"});
}

TEST_CASE("a name is searched next to its file and then in the header folders in order") {
  const Files files = {{"k.cu", "#include \"a.h\"\n#include \"b.h\"\n#include <c.h>\n"},
                       {"a.h", "beside"},
                       {"one/a.h", "one"},
                       {"one/b.h", "one"},
                       {"two/b.h", "two"},
                       {"two/c.h", "two"},
                       {"c.h", "beside"}};
  const auto found = closure(files, {"one", "two"});
  CHECK(file(found.own, "a.h").content == "beside");
  CHECK(file(found.own, "b.h").content == "one");
  CHECK(file(found.own, "c.h").content == "two");
}

TEST_CASE("a header folder outside the spec's folder gives its files names without it") {
  const Files files = {{"k.cu", "#include \"io.cuh\"\n"},
                       {"../common/io.cuh", "#include \"detail/x.cuh\"\n"},
                       {"../common/detail/x.cuh", ""}};
  const auto found = closure(files, {"../common/"});
  CHECK(names(found.own) == Names{"detail/x.cuh", "io.cuh"});
  CHECK(found.source.content == files.at("k.cu"));
}

TEST_CASE("an include that NVRTC would not resolve is spelled by the name of its file") {
  const auto found = closure({{"k.cu", "#include \"./a/b.h\"\n"},
                              {"a/b.h", "int x;\n#include \"c.h\" // c\n#include \"../d.h\"\n"},
                              {"a/c.h", ""},
                              {"d.h", ""}});
  CHECK(found.source.content == "#include \"a/b.h\"\n");
  CHECK(file(found.own, "a/b.h").content == "int x;\n#include \"a/c.h\" // c\n#include \"d.h\"\n");
  CHECK(file(found.own, "a/b.h").digest == cubind::Digest::of(file(found.own, "a/b.h").content));
}

TEST_CASE("two files of one name are told apart") {
  const auto found = closure({{"k.cu", "#include \"u.h\"\n#include \"lib.h\"\n"},
                              {"u.h", "mine"},
                              {"lib/lib.h", "#include \"u.h\"\n"},
                              {"lib/u.h", "theirs"}},
                             {"lib"});
  CHECK(names(found.own) == Names{"(2)/u.h", "lib.h", "u.h"});
  CHECK(file(found.own, "lib.h").content == "#include \"(2)/u.h\"\n");
  CHECK(file(found.own, "(2)/u.h").content == "theirs");
}

TEST_CASE("a source that is included again is a header as well") {
  const auto found = closure({{"k.cu", "#pragma once\n#include \"a.h\"\n"}, {"a.h", "#include \"k.cu\"\n"}});
  CHECK(names(found.own) == Names{"a.h", "k.cu"});
}

TEST_CASE("a name that nothing resolves is no error and stays as it is") {
  const std::string text = "#include <fp.h>\n#include \"missing.h\"\n#if __has_include(<x>)\n#endif\n";
  const auto found = closure({{"k.cu", text}}, {}, {{"other.h", ""}});
  CHECK(found.source.content == text);
  CHECK(found.own.empty());
  CHECK(found.toolkit.empty());
}

TEST_CASE("toolkit headers come with what they include and may skip what is missing") {
  const auto found = closure({{"k.cu", "#include <crt/mma.h>\n"}}, {},
                             {{"crt/mma.h", "#include \"mma.hpp\"\n#include <fp.h>\n#include_next <q>\n"},
                              {"crt/mma.hpp", "#include <string.h>\n"},
                              {"fp.h", "#include \"/abs\"\n"}});
  CHECK(names(found.toolkit) == Names{"crt/mma.h", "crt/mma.hpp", "fp.h"});
  CHECK_THAT(file(found.toolkit, "crt/mma.h").content,
             StartsWith("#include \"crt/mma.hpp\"\n#include <fp.h>\n"));
  CHECK(file(found.toolkit, "fp.h").content == "#include \"(absolute path)/abs\"\n");
}

TEST_CASE("a toolkit header that includes by macro brings its whole package") {
  const Files toolkit = {{"cub/reduce.cuh", "#include <thrust/system.h>\n"},
                         {"thrust/system.h", "#include SYSTEM\n"},
                         {"cuda/std/limits", "#include <fp.h>\n"},
                         {"nv/target", ""},
                         {"fp.h", ""},
                         {"other.h", ""},
                         {"lib/a.h", "#if __has_include(B)\n#endif\n"},
                         {"lib/b.h", ""}};
  CHECK(names(closure({{"k.cu", "#include <cub/reduce.cuh>\n"}}, {}, toolkit).toolkit) ==
        Names{"cub/reduce.cuh", "cuda/std/limits", "fp.h", "nv/target", "thrust/system.h"});
  CHECK(names(closure({{"k.cu", "#include <cuda/std/limits>\n"}}, {}, toolkit).toolkit) ==
        Names{"cuda/std/limits", "fp.h"});
  CHECK(names(closure({{"k.cu", "#include <lib/a.h>\n"}}, {}, toolkit).toolkit) ==
        Names{"lib/a.h", "lib/b.h"});
}

TEST_CASE("stand-ins are for own files and whole packages and go before the toolkit") {
  const Files toolkit = {{"vector_types.h", "of the toolkit"},
                         {"fp.h", "#include <cstdint>\n#include <vector_types.h>\n"},
                         {"cub/a.cuh", "#include M\n#include <climits>\n"}};
  const auto own = closure({{"k.cu", "#include <fp.h>\n#include <vector_types.h>\n"}}, {}, toolkit);
  CHECK(names(own.toolkit) == Names{"fp.h", "vector_types.h"});
  CHECK_THAT(file(own.toolkit, "vector_types.h").content, Contains("predefined"));
  CHECK(file(closure({{"k.cu", "#include <fp.h>\n"}}, {}, toolkit).toolkit, "vector_types.h").content ==
        "of the toolkit");
  CHECK(names(closure({{"k.cu", "#include <cub/a.cuh>\n"}}, {}, toolkit).toolkit) ==
        Names{"climits", "cub/a.cuh", "limits.h"});
}

TEST_CASE("the spec's own part does not depend on the toolkit") {
  const Files own = {{"k.cu", "#include \"./fp.h\"\n#include \"a.h\"\n"}, {"a.h", "#include <fp.h>\n"}};
  const auto without = closure(own);
  const auto with = closure(own, {}, {{"fp.h", "x"}});
  CHECK(without.source == with.source);
  CHECK(without.own_digests() == with.own_digests());
  CHECK(without.toolkit_digest() != with.toolkit_digest());
}

TEST_CASE("a changed header changes its pair and a changed toolkit header the toolkit's digest") {
  const Files toolkit = {{"fp.h", "1"}};
  const auto before = closure({{"k.cu", "#include \"a.h\"\n#include <fp.h>\n"}, {"a.h", "1"}}, {}, toolkit);
  const auto after =
      closure({{"k.cu", "#include \"a.h\"\n#include <fp.h>\n"}, {"a.h", "2"}}, {}, {{"fp.h", "2"}});
  CHECK(before.own_digests() != after.own_digests());
  CHECK(before.source == after.source);
  CHECK(before.toolkit_digest() != after.toolkit_digest());
}

TEST_CASE("moving a header folder changes nothing that the key holds") {
  const auto here = closure({{"k.cu", "#include \"io.h\"\n"}, {"../common/io.h", "x"}}, {"../common"});
  const auto there = closure({{"k.cu", "#include \"io.h\"\n"}, {"lib/deep/io.h", "x"}}, {"lib/deep"});
  CHECK(here.source == there.source);
  CHECK(here.own_digests() == there.own_digests());
}

TEST_CASE("an include by macro names every file that a define may mean") {
  const auto found =
      closure({{"k.cu", "#ifdef A\n#define H \"a.h\"\n#else\n#define H G\n#endif\n#include H\n"},
               {"a.h", "#define G <b.h>\n"},
               {"b.h", "#if __has_include(C)\n#endif\n#define C \"c.h\"\n"},
               {"c.h", ""},
               {"d.h", ""}});
  CHECK(names(found.own) == Names{"a.h", "b.h", "c.h"});
  CHECK(closure({{"k.cu", "#include UNKNOWN\n#include F(x)\n"}}).own.empty());
}

TEST_CASE(
    "an include by a macro with a parameter names the files that its definitions make of the argument") {
  const auto found = closure({{"k.cu",
                               "#if V\n#define STD(header) <new/std/header>\n#else\n#define STD(header) "
                               "<std/header>\n#endif\n#include STD( limits )\n#include STD(header)\n"},
                              {"lib/new/std/limits", "#include STD(sub/tuple.h)\n"},
                              {"lib/std/limits", ""},
                              {"lib/std/header", ""},
                              {"lib/std/sub/tuple.h", ""},
                              {"lib/std/other", ""}},
                             {"lib"});
  CHECK(names(found.own) == Names{"new/std/limits", "std/header", "std/limits", "std/sub/tuple.h"});
}

TEST_CASE("the macros of the search name files too") {
  IncludeSearch search{.own = lookup({{"k.cu", "#include TILE\n"}, {"t1.h", ""}, {"t2.h", ""}, {"t3.h", ""}}),
                       .header_folders = {}};
  search.macros = {{"TILE", "\"t1.h\"", ""}, {"TILE", "<t2.h>", ""}};
  CHECK(names(include_closure("k.cu", search).own) == Names{"t1.h", "t2.h"});
}

TEST_CASE("a macro's file is found under the name that the macro has") {
  const Files files = {
      {"k.cu", "#include \"sub/a.h\"\n"}, {"sub/a.h", "#define H \"b.h\"\n#include H\n"}, {"sub/b.h", "x"}};
  const auto found = closure(files);
  CHECK(names(found.own) == Names{"b.h", "sub/a.h", "sub/b.h"});
  CHECK(file(found.own, "b.h").content == "#include \"sub/b.h\"\n");
  Files twice = files;
  twice["k.cu"] += "#include \"b.h\"\n";
  twice["b.h"] = "y";
  CHECK_THAT(failure(twice), StartsWith("sub/a.h:2 | the include by macro \"H\" names \"b.h\""));
}

TEST_CASE("an absolute name is handed over as one that no machine has") {
  for (const char* text :
       {"#include \"/etc/passwd\"\n", "#include </etc/passwd>\n", "%:include \"/etc/passwd\"\n",
        "#inc\\\nlude \"/etc/passwd\"\n", "#include \"\\\n/etc/passwd\"\n",
        "#if 0\n#include \"//etc/passwd\"\n#endif\n", "#if __has_include(\"/etc/passwd\")\n#endif\n",
        "#embed \"/etc/passwd\"\n", "# /**/ include /**/ \"/etc/passwd\"\n"}) {
    const auto found = closure({{"k.cu", text}, {"etc/passwd", ""}});
    CHECK_THAT(found.source.content, Contains("(absolute path)/"));
    CHECK_NOTHROW(cubind::refuse_absolute_includes("k.cu", found.source.content));
    CHECK(found.own.empty());
  }
}

TEST_CASE("a name that leaves the spec's folder finds nothing unless it leads to a header folder") {
  const Files outside = {{"k.cu", "#include \"../x.h\"\n#include \"a/../../x.h\"\n"}, {"../x.h", ""}};
  CHECK(closure(outside).own.empty());
  CHECK(closure(outside).source.content == outside.at("k.cu"));
  const Files lib = {{"k.cu", "#include \"../lib/b.h\"\n"},
                     {"../lib/b.h", "#include \"../secret.h\"\n"},
                     {"../secret.h", ""}};
  CHECK(names(closure(lib, {"../lib"}).own) == Names{"b.h"});
}

TEST_CASE("a name that leaves the toolkit by a folder of it is not read") {
  const auto is_read = [](const std::string& name) {
    std::vector<std::string> asked;
    ToolkitHeaders toolkit([&](const std::string& header) -> std::optional<std::string> {
      asked.push_back(header);
      return "";
    });
    IncludeSearch search;
    search.own = lookup({{"k.cu", "#include <" + name + ">\n#include \"" + name + "\"\n"}});
    search.toolkit = &toolkit;
    return !include_closure("k.cu", search).toolkit.empty() || !asked.empty();
  };
  CHECK(is_read("cuda/../secret.h"));
  for (const char* name :
       {"cuda/../../secret.h", "../secret.h", "./../secret.h", "cuda/std/../../../etc/passwd",
        "cuda/..//../secret.h", "x/../..", "/etc/passwd"}) {
    INFO(name);
    CHECK_FALSE(is_read(name));
  }
}

TEST_CASE("a trigraph is refused with its line and what only other compilers read is skipped") {
  CHECK_THAT(failure({{"k.cu", "\n?\?=include \"a.h\"\n"}}), StartsWith("k.cu:2 | the trigraphs"));
  CHECK(closure({{"k.cu", "#embed \"a.h\"\n#include_next <a.h>\n"}, {"a.h", ""}}).own.empty());
}

TEST_CASE("an own file with the name of a toolkit header that is used as well is refused") {
  CHECK_THAT(failure({{"k.cu", "#include \"fp.h\"\n#include <bf.h>\n"}, {"fp.h", ""}}, {},
                     {{"fp.h", ""}, {"bf.h", "#include \"fp.h\"\n"}}),
             StartsWith("fp.h | the spec brings a file with the name of a CUDA toolkit header"));
}

TEST_CASE("a CCCL of the spec's own replaces the toolkit's") {
  const auto found = closure({{"k.cu", "#include <nv/target>\n#include <fp.h>\n"}, {"nv/target", "own"}}, {},
                             {{"fp.h", "#include <nv/target>\n"}, {"nv/target", "of the toolkit"}});
  CHECK(names(found.own) == Names{"nv/target"});
  CHECK(names(found.toolkit) == Names{"fp.h"});
}

TEST_CASE("a missing source is not found") {
  const Error error = cubind::test::error_of([&] { closure({{"other.cu", ""}}); }).value();
  CHECK(error.code() == ErrorCode::NotFound);
  CHECK(error.where() == "k.cu");
}

TEST_CASE("a closure without end is cut off") {
  IncludeSearch search;
  search.own = [](const std::string& path) -> std::optional<std::string> {
    const std::size_t number = path == "k.cu" ? 0 : std::stoul(path);
    return "#include \"" + std::to_string(number + 1) + ".h\"\n";
  };
  CHECK_THROWS_AS(include_closure("k.cu", search), Error);
}

TEST_CASE("a second look finds absolute names in any text") {
  CHECK_NOTHROW(cubind::refuse_absolute_includes("a.h", "#include MACRO\n#include \"../b.h\"\n"));
  CHECK_THROWS_AS(cubind::refuse_absolute_includes("a.h", "%:include \"/etc/passwd\"\n"), Error);
}
