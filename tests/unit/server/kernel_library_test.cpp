#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "server/kernel_library.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

/// A folder with a copy of vector_add, and of the headers it includes.
struct LibraryFixture {
  TempDir folder;
  ManualClock clock;
  fs::path spec = folder.path() / "vector_add" / "vector_add.json";

  LibraryFixture() {
    for (const char* name : {"vector_add", "common"}) {
      fs::copy(source_dir() / "variants" / name, folder.path() / name);
    }
  }
  void replace(const std::string& what, const std::string& with) {
    std::string text = read_file(spec);
    text.replace(text.find(what), what.size(), with);
    write_file_atomic(spec, text);
  }
};

TEST_CASE("a changed spec is read again at most once a second and keeps what has not changed") {
  LibraryFixture f;
  KernelLibrary library({f.folder.path()}, f.clock);
  const auto before = library.find("vector_add");
  f.replace("[1, 2, 4]", "[1, 2, 4, 8]");
  CHECK(library.find("vector_add") == before);
  f.clock.advance(std::chrono::seconds(2));
  const auto after = library.find("vector_add");
  CHECK(after->revision != before->revision);
  CHECK(after->spec->tunables.back().values.size() == 4);
  f.clock.advance(std::chrono::seconds(2));
  CHECK(library.find("vector_add") == after);
}

TEST_CASE("a changed source makes another revision too") {
  LibraryFixture f;
  KernelLibrary library({f.folder.path()}, f.clock);
  const auto before = library.find("vector_add");
  const fs::path source = f.spec.parent_path() / "vector_add.cu";
  write_file_atomic(source, read_file(source) + "\n// changed\n");
  library.reload();
  CHECK(library.find("vector_add")->revision != before->revision);
}

TEST_CASE("a broken spec is listed with its error and does not disturb the others") {
  LibraryFixture f;
  write_file_atomic(f.folder.path() / "broken.json", R"({"name": "broken", "tunables": {"A": "x"}})");
  KernelLibrary library({f.folder.path()}, f.clock);
  CHECK(library.find("vector_add")->spec);
  CHECK_THROWS_WITH(library.find("broken"), Contains("broken.json"));
  const auto kernels = library.kernels();
  CHECK(kernels->size() == 2);
}

TEST_CASE("a broken spec that is repaired is taken up") {
  LibraryFixture f;
  f.replace("\"source\"", "\"sauce\"");
  KernelLibrary library({f.folder.path()}, f.clock);
  CHECK_THROWS_AS(library.find("vector_add"), Error);
  f.replace("\"sauce\"", "\"source\"");
  library.reload();
  CHECK(library.find("vector_add")->spec);
}

TEST_CASE("of two specs with one name the first stands and the other is listed with both files") {
  LibraryFixture f;
  KernelLibrary library({source_dir() / "variants", f.folder.path()}, f.clock);
  CHECK(library.find("vector_add")->file.starts_with((source_dir() / "variants").string()));
  const auto kernels = library.kernels();
  const auto duplicate =
      std::ranges::find_if(*kernels, [](const auto& entry) { return !entry->error.empty(); });
  REQUIRE(duplicate != kernels->end());
  CHECK_THAT((*duplicate)->error, Contains((source_dir() / "variants").string()));
  CHECK_THAT((*duplicate)->error, Contains(f.spec.string()));
}

TEST_CASE("a spec that several folders and links lead to is one kernel without an error") {
  LibraryFixture f;
  TempDir elsewhere;
  fs::create_directory_symlink(f.folder.path(), elsewhere.path() / "link");
  KernelLibrary library({f.folder.path(), f.folder.path(), f.spec.parent_path(), elsewhere.path() / "link"},
                        f.clock);
  const auto kernels = library.kernels();
  REQUIRE(kernels->size() == 1);
  CHECK(kernels->front()->error.empty());
  CHECK(kernels->front()->file == f.spec.string());
}

TEST_CASE("tables among the specs are no kernels and an unknown name is told what is near") {
  LibraryFixture f;
  write_file_atomic(f.folder.path() / "table.json", R"({"format": "cubind-table"})");
  KernelLibrary library({f.folder.path()}, f.clock);
  CHECK(library.kernels()->size() == 1);
  CHECK_THROWS_WITH(library.find("vector_ad"), Contains("vector_add"));
}

TEST_CASE("a spec that is removed is gone") {
  LibraryFixture f;
  KernelLibrary library({f.folder.path()}, f.clock);
  fs::remove(f.spec);
  library.reload();
  CHECK_THROWS_AS(library.find("vector_add"), Error);
}

}  // namespace
}  // namespace cubind::test
