#include "tuner/spec/cubin_entries.hpp"

#include <catch2/catch.hpp>

#include "base/file.hpp"
#include "tests/support/named_cubin.hpp"
#include "tests/support/paths.hpp"
#include "tests/unit/spec/cubin_builder.hpp"

namespace cubind::test {
namespace {

using Bytes = std::vector<std::uint32_t>;

std::string golden(const std::string& architecture) {
  return read_file(source_dir() / "tests/golden/cubins" / ("entries." + architecture + ".cubin"));
}

/// Of the only entry; absent: it was not understood.
std::optional<CubinEntry> entry_of(const std::string& section) {
  const CubinEntries entries = read_cubin_entries(make_cubin({{"k", section}}));
  return entries.empty() ? std::nullopt : std::optional(entries.at("k"));
}

TEST_CASE("the entries of compiled cubins are reported with sizes and limits") {
  const std::string architecture = GENERATE("sm_90", "sm_120");
  const CubinEntries entries = read_cubin_entries(golden(architecture));
  CHECK(entries.size() == 7);
  CHECK(entries.at("scalars") == CubinEntry{.parameter_bytes = Bytes{8, 8, 4, 1, 16, 12}});
  CHECK(entries.at("nothing") == CubinEntry{.parameter_bytes = Bytes{}});
  CHECK(entries.at("large") == CubinEntry{.parameter_bytes = Bytes{8, 6000, 1, 2}});
  CHECK(entries.at("bounded") == CubinEntry{.parameter_bytes = Bytes{8}, .max_threads = 64});
  CHECK(entries.at("sized") == CubinEntry{.parameter_bytes = Bytes{8},
                                          .block = Dim3{32, 4, 1},
                                          .cluster = Dim3{},
                                          .grid_counts_clusters = true});
  CHECK(entries.at("clustered") == CubinEntry{.parameter_bytes = Bytes{8}, .cluster = Dim3{2, 1, 1}});
  CHECK(entries.at("launched_in_clusters") ==
        CubinEntry{.parameter_bytes = Bytes{8}, .wants_launch_clusters = true});
}

TEST_CASE("a list of parameters with a gap or without its end is unknown and the limits are not") {
  const std::string bound = extents(0x05, 64, 1, 1);
  CHECK(entry_of(parameter(1, 8, 4) + parameter(0, 0, 8) + all_bytes(12))->parameter_bytes == Bytes{8, 4});
  for (const std::string& list :
       {parameter(0, 0, 8) + parameter(2, 8, 4) + all_bytes(12), parameter(0, 0, 8) + all_bytes(12),
        parameter(0, 0, 8), parameter(0, 0, 8) + parameter(1, 4, 8) + all_bytes(12),
        parameter(0, 0, 8) + parameter(0, 0, 8) + all_bytes(8), parameter(0, 0, 0), all_bytes(8)}) {
    const auto entry = entry_of(list + bound);
    REQUIRE(entry);
    CHECK_FALSE(entry->parameter_bytes);
    CHECK(entry->max_threads == 64);
  }
}

TEST_CASE("attributes that are not known are skipped") {
  const auto entry = entry_of(mark(0x77) + attribute(0x78, "four") + "\x02\x4a" + std::string(2, '\0') +
                              extents(0x10, 8, 4, 2));
  REQUIRE(entry);
  CHECK(entry->block == Dim3{8, 4, 2});
}

TEST_CASE("an entry with a value that is not understood is left out and the others are not") {
  for (const std::string& section :
       {attribute(0x17, "short"), attribute(0x05, "short"), extents(0x3d, 2, 0, 1), extents(0x10, 0, 1, 1),
        extents(0x05, 5000, 1, 1), std::string("\x05\x17\0\0", 4), std::string("\0\0\0\0", 4),
        std::string("\x04\x17"), std::string("\x04\x30\xff\xff", 4)}) {
    const CubinEntries entries = read_cubin_entries(make_cubin({{"odd", section}, {"plain", ""}}));
    CHECK(entries == CubinEntries{{"plain", CubinEntry{.parameter_bytes = Bytes{}}}});
  }
}

TEST_CASE("other bytes than a cubin's have no entries") {
  const std::string cubin = make_cubin({{"k", ""}});
  REQUIRE(read_cubin_entries(cubin).size() == 1);
  CHECK(read_cubin_entries("").empty());
  CHECK(
      read_cubin_entries("a text that is long enough to be the header of an ELF file, but is none").empty());
  for (const std::size_t at : {0, 4, 5, 18, 58}) {  // magic, class, byte order, machine, size of a header
    std::string other = cubin;
    other[at] = '\x03';
    CHECK(read_cubin_entries(other).empty());
  }
}

TEST_CASE("a cubin that ends early or has changed bytes is read without harm") {
  const std::string cubin = make_cubin({{"k", parameter(0, 0, 8) + all_bytes(8)}, {"l", mark(0x3e)}});
  const CubinEntries whole = read_cubin_entries(cubin);
  for (std::size_t size = 0; size < cubin.size(); ++size) {
    CHECK(read_cubin_entries(std::string(cubin, 0, size)).empty());  // the sections' headers come last
  }
  std::size_t different = 0;
  for (std::size_t at = 0; at < cubin.size(); ++at) {
    for (const char value : {'\0', '\x7f', '\xff'}) {
      std::string changed = cubin;
      changed[at] = value;
      const std::string copy(changed.data(), changed.size());
      different += read_cubin_entries(copy) != whole ? 1 : 0;
    }
  }
  CHECK(different > 100);
}

TEST_CASE("the objects of a cubin's symbol table are its variables") {
  const CubinVariables variables = read_cubin_variables(golden("sm_90"));
  CHECK(variables == CubinVariables{{".nv.reservedSmem.offset0", 4}});  // of every cubin
  CHECK(read_cubin_variables("").empty());
  CHECK(read_cubin_variables(make_cubin({{"k", ""}})).empty());
}

TEST_CASE("a symbol without a section is a function of the driver that is called") {
  CHECK(calls_driver(named_cubin("k", "code", "", "vprintf"), "vprintf"));
  CHECK_FALSE(calls_driver(named_cubin("k", "vprintf", "", "vprintf_of_another"), "vprintf"));
  CHECK_FALSE(calls_driver(named_cubin("vprintf", "code"), "vprintf"));
  CHECK_FALSE(calls_driver("vprintf", "vprintf"));
}

TEST_CASE("a symbol table that ends early or has changed bytes is read without harm") {
  const std::string cubin = golden("sm_90");
  std::size_t read = 0;
  for (std::size_t at = 0; at < cubin.size(); ++at) {
    std::string changed = cubin;
    changed[at] = '\xff';
    read += read_cubin_variables(std::string(changed.data(), changed.size())).size();
    read += at % 16 == 0 ? read_cubin_variables(std::string(cubin, 0, at)).size() : 0;
  }
  CHECK(read > cubin.size() / 2);
}

}  // namespace
}  // namespace cubind::test
