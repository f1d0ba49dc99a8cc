#include "tuner/spec/spec_folder.hpp"

#include <catch2/catch.hpp>

#include "base/file.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {
namespace {

namespace fs = std::filesystem;

struct Folders {
  TempDir folder;
  fs::path root = folder.path();
  void add(const fs::path& file, const std::string& text = "{}") {
    create_folders((root / file).parent_path());
    write_file_atomic(root / file, text);
  }
};

TEST_CASE_METHOD(Folders, "specs lie in a folder and its sub-folders but not deeper") {
  for (const char* file : {"b.json", "a/k.json", "a/k.cu", "a/deeper/k.json", "tables/t.json",
                           ".hidden/k.json", "a/.draft.json"}) {
    add(file);
  }
  CHECK(spec_files({root}) == std::vector<fs::path>{root / "a/k.json", root / "b.json"});
}

TEST_CASE_METHOD(Folders, "a file that two folders lead to is one spec") {
  add("one/k.json");
  fs::create_symlink(root / "one", root / "two");
  CHECK(spec_files({root / "two", root / "one"}) == std::vector<fs::path>{root / "two/k.json"});
}

TEST_CASE_METHOD(Folders, "a folder that is not there has no specs") {
  CHECK(spec_files({root / "none"}).empty());
}

TEST_CASE_METHOD(Folders, "a table among the specs is told by its format") {
  add("t.json", R"({"format": "cubind-table"})");
  add("k.json", R"({"name": "k"})");
  add("broken.json", "{");
  CHECK(is_table_file(root / "t.json"));
  CHECK_FALSE(is_table_file(root / "k.json"));
  CHECK_FALSE(is_table_file(root / "broken.json"));
}

TEST_CASE("a build finds the specs of its checkout") {
  const auto shipped = shipped_variants();
  REQUIRE(shipped);
  CHECK(fs::exists(*shipped / "rmsnorm" / "rmsnorm_forward.json"));
}

}  // namespace
}  // namespace cubind::test
