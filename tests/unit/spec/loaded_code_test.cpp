#include "tuner/spec/loaded_code.hpp"

#include <catch2/catch.hpp>

#include "base/file.hpp"
#include "base/text.hpp"
#include "tests/support/facts.hpp"
#include "tests/support/named_cubin.hpp"
#include "tests/support/paths.hpp"
#include "tuner/spec/cubin_sections.hpp"

namespace cubind::test {
namespace {

TEST_CASE("cubins that differ in names and debug information load the same code") {
  const auto code = loaded_code(named_cubin("copy_0", "abcd"), {"copy_0"});
  REQUIRE(code);
  CHECK(loaded_code(named_cubin("copy_12", "abcd"), {"copy_12"}) == code);
  CHECK(loaded_code(named_cubin("copy_0", "abcd", "line 7"), {"copy_0"}) == code);
  CHECK(loaded_code(named_cubin("copy_0", "abce"), {"copy_0"}) != code);
  CHECK(loaded_code(named_cubin("copy_0", "abcde"), {"copy_0"}) != code);
}

TEST_CASE("the code of a cubin without the entry, and of other bytes, is not known") {
  const std::string cubin = named_cubin("copy", "abcd");
  CHECK_FALSE(loaded_code(cubin, {"other"}));
  CHECK_FALSE(loaded_code("copy<4>", {"copy"}));
  for (std::size_t size = 0; size < cubin.size(); ++size) {
    CHECK_FALSE(loaded_code(cubin.substr(0, size), {"copy"}));
  }
}

TEST_CASE("the name of an entry in a compiled cubin does not count, and which entry it is does") {
  const std::string cubin = read_file(source_dir() / "tests/golden/cubins/entries.sm_90.cubin");
  const std::string renamed = replaced(cubin, "scalars", "sCaLaRs");
  REQUIRE(renamed != cubin);
  CHECK(loaded_code(cubin, {"scalars"}) == loaded_code(renamed, {"sCaLaRs"}));
  CHECK(loaded_code(cubin, {"scalars"}) != loaded_code(cubin, {"nothing"}));
  CHECK(loaded_code(cubin, {"scalars", "nothing"}) != loaded_code(cubin, {"nothing", "scalars"}));
}

TEST_CASE("each byte of code and constants and attributes of a compiled cubin counts") {
  const std::string cubin = read_file(source_dir() / "tests/golden/cubins/entries.sm_90.cubin");
  const auto code = loaded_code(cubin, {"bounded"});
  const CubinSections sections(cubin);
  int flipped = 0;
  for (std::size_t i = 0; i < sections.count(); ++i) {
    const std::string_view name = sections.name(i);
    const std::string_view content = sections.content(i).value_or("");
    if (content.empty() ||
        !(name.starts_with(".text.") || name.starts_with(".nv.constant") || name.starts_with(".nv.info"))) {
      continue;
    }
    std::string other = cubin;
    other[static_cast<std::size_t>(content.data() - cubin.data()) + content.size() / 2] ^= 1;
    INFO(name);
    CHECK(loaded_code(other, {"bounded"}) != code);
    ++flipped;
  }
  CHECK(flipped >= 20);
}

TEST_CASE("launches are equal without the names of entries and variables") {
  LaunchPlan one;
  one.launches.push_back(
      {.entry = "copy<1>", .entry_symbol = "c1", .grid = {2}, .block = {32}, .parameters = {}});
  one.launches[0].parameters.push_back({.name = "x", .variable = "filter<1>", .symbol = "f1"});
  LaunchPlan other = one;
  other.launches[0].entry = "copy<2>";
  other.launches[0].entry_symbol = "c2";
  other.launches[0].parameters[0].variable = "filter<2>";
  other.launches[0].parameters[0].symbol = "f2";
  CHECK(without_names(one, {test::resources_of("c1", 32)}) ==
        without_names(other, {test::resources_of("c2", 32)}));
  CHECK(without_names(one, {test::resources_of("c1", 32)}) !=
        without_names(other, {test::resources_of("c2", 33)}));
  other.launches[0].grid.x = 3;
  CHECK(without_names(one, {}) != without_names(other, {}));
}

}  // namespace
}  // namespace cubind::test
