#include "tuner/includes/include_closure.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "base/error.hpp"

using cubind::CompilerFile;
using cubind::Error;
using cubind::ErrorCode;
using cubind::IncludeClosure;
using cubind::IncludeSearch;

namespace {

using Files = std::map<std::string, std::string>;

cubind::FileLookup lookup(Files files) {
  return [files = std::move(files)](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    return found == files.end() ? std::nullopt : std::optional(found->second);
  };
}

IncludeClosure closure(Files own, std::vector<std::string> folders = {}, Files toolkit = {}) {
  IncludeSearch search{.own = lookup(std::move(own)), .header_folders = std::move(folders), .toolkit = {}};
  if (!toolkit.empty()) {
    search.toolkit = lookup(std::move(toolkit));
  }
  return include_closure("k.cu", search);
}

std::vector<std::string> names(const std::vector<CompilerFile>& files) {
  std::vector<std::string> result;
  for (const CompilerFile& file : files) {
    result.push_back(file.name);
  }
  return result;
}

const CompilerFile& file(const std::vector<CompilerFile>& files, const std::string& name) {
  const auto found = std::ranges::find_if(files, [&](const auto& entry) { return entry.name == name; });
  REQUIRE(found != files.end());
  return *found;
}

// What is thrown, as "where | cause".
std::string failure(Files own, std::vector<std::string> folders = {}, Files toolkit = {}) {
  try {
    closure(std::move(own), std::move(folders), std::move(toolkit));
  } catch (const Error& error) {
    return error.where() + " | " + error.cause();
  }
  return "nothing";
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
  CHECK(found.absent.empty());
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

TEST_CASE("names that nothing resolves are absent and no error") {
  const auto found =
      closure({{"k.cu", "#include <cuda_fp16.h>\n#include \"missing.h\"\n#if __has_include(<x>)\n#endif\n"}});
  CHECK(found.absent == Names{"cuda_fp16.h", "missing.h"});
  CHECK(found.own.empty());
}

TEST_CASE("toolkit headers come with what they include and may skip what is missing") {
  const auto found =
      closure({{"k.cu", "#include <crt/mma.h>\n"}}, {},
              {{"crt/mma.h", "#include \"mma.hpp\"\n#include <fp.h>\n#include MACRO\n#include_next <q>\n"},
               {"crt/mma.hpp", "#include <string.h>\n"},
               {"fp.h", "#include \"/abs\"\n"}});
  CHECK(names(found.toolkit) == Names{"crt/mma.h", "crt/mma.hpp", "fp.h"});
  CHECK_THAT(file(found.toolkit, "crt/mma.h").content,
             StartsWith("#include \"crt/mma.hpp\"\n#include <fp.h>\n"));
  CHECK(found.absent == Names{"string.h"});
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

TEST_CASE("an include by macro names file and line") {
  CHECK_THAT(failure({{"k.cu", "#include \"a.h\"\n"}, {"a.h", "\n#define H \"b.h\"\n#include H\n"}}),
             StartsWith("a.h:3 | #include by macro \"H\""));
  CHECK_THAT(failure({{"k.cu", "#if __has_include(H)\n#endif\n"}}),
             StartsWith("k.cu:1 | __has_include by macro \"H\""));
}

TEST_CASE("absolute names are refused in every spelling") {
  for (const char* text :
       {"#include \"/etc/passwd\"\n", "#include </etc/passwd>\n", "%:include \"/etc/passwd\"\n",
        "#inc\\\nlude \"/etc/passwd\"\n", "#include \"\\\n/etc/passwd\"\n",
        "#if 0\n#include \"//etc/passwd\"\n#endif\n", "#if __has_include(\"/etc/passwd\")\n#endif\n",
        "# /**/ include /**/ \"/etc/passwd\"\n"}) {
    CHECK_THAT(failure({{"k.cu", text}}), Contains("absolute path"));
  }
}

TEST_CASE("a name that leaves the spec's folder is refused unless it leads to a header folder") {
  CHECK_THAT(failure({{"k.cu", "\n#include \"../../x\"\n"}}),
             StartsWith("k.cu:2 | #include \"../../x\" leaves"));
  CHECK_THAT(failure({{"k.cu", "#include \"a/../../x.h\"\n"}, {"../x.h", ""}}),
             Contains("leaves the spec's folder"));
  CHECK_THAT(
      failure(
          {{"k.cu", "#include \"b.h\"\n"}, {"../lib/b.h", "#include \"../secret.h\"\n"}, {"../secret.h", ""}},
          {"../lib"}),
      StartsWith("../lib/b.h:1 | #include \"../secret.h\" leaves"));
  CHECK(failure({{"k.cu", "#include \"../lib/b.h\"\n"}, {"../lib/b.h", ""}}, {"../lib"}) == "nothing");
}

TEST_CASE("trigraphs and embed and include_next are refused with their line") {
  CHECK_THAT(failure({{"k.cu", "\n?\?=include \"a.h\"\n"}}), StartsWith("k.cu:2 | the trigraphs"));
  CHECK_THAT(failure({{"k.cu", "#embed \"data\"\n"}}), StartsWith("k.cu:1 | #embed"));
  CHECK_THAT(failure({{"k.cu", "#include_next <a.h>\n"}}), StartsWith("k.cu:1 | #include_next"));
}

TEST_CASE("an own file with the name of a toolkit header that is used as well is refused") {
  CHECK_THAT(failure({{"k.cu", "#include \"fp.h\"\n#include <bf.h>\n"}, {"fp.h", ""}}, {},
                     {{"fp.h", ""}, {"bf.h", "#include \"fp.h\"\n"}}),
             StartsWith("fp.h | the spec brings a file with the name of a CUDA toolkit header"));
}

TEST_CASE("a missing source is not found") {
  try {
    closure({{"other.cu", ""}});
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::NotFound);
    CHECK(error.where() == "k.cu");
  }
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
