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

TEST_CASE_METHOD(Folders, "a folder that is missing has no specs") {
  CHECK(spec_files({root / "none"}).empty());
}

TEST_CASE_METHOD(Folders, "a table among the specs is recognised by its format") {
  add("t.json", R"({"format": "cubind-table"})");
  add("k.json", R"({"name": "k"})");
  add("broken.json", "{");
  CHECK(is_table_file(root / "t.json"));
  CHECK_FALSE(is_table_file(root / "k.json"));
  CHECK_FALSE(is_table_file(root / "broken.json"));
}

TEST_CASE_METHOD(Folders, "specs are known by their kernels and broken ones by their files") {
  for (const char* side : {"a", "b"}) {
    create_folders(root / side);
    fs::copy(source_dir() / "variants" / "vector_add", root / side / "vector_add",
             fs::copy_options::recursive);
    fs::copy(source_dir() / "variants" / "common", root / side / "common");
  }
  add("a/broken.json");
  add("a/t.json", R"({"format": "cubind-table"})");
  const KnownSpecs known = load_specs({root / "a", root / "b"});
  REQUIRE(known.specs.size() == 1);
  CHECK(known.specs.at("vector_add")->file == (root / "a/vector_add/vector_add.json").string());
  REQUIRE(known.broken.size() == 1);
  CHECK_THAT(known.broken.at("broken"), Catch::Contains("broken.json"));
}

TEST_CASE("a build finds the specs of its checkout") {
  const auto shipped = shipped_variants();
  REQUIRE(shipped);
  CHECK(fs::exists(*shipped / "rmsnorm" / "rmsnorm_forward.json"));
}

}  // namespace
}  // namespace cubind::test
