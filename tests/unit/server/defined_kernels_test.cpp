#include "server/defined_kernels.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "base/file.hpp"
#include "tests/support/triton_spec.hpp"

namespace cubind::test {
namespace {

std::shared_ptr<const KernelSpec> rows(const std::string& dtype) {
  TritonSpec spec;
  spec.json["triton"]["key"][1][1] = dtype;
  return spec.parse();
}

TEST_CASE("a definition is written once and reads as it was given") {
  const TempDir folder;
  DefinedKernels defined(folder.path() / "kernels");
  const auto spec = rows("fp32");
  CHECK(defined.add(*spec));
  CHECK_FALSE(defined.add(*spec));
  const auto read =
      load_kernel_spec((folder.path() / "kernels" / spec->name / (spec->name + ".json")).string());
  CHECK(read->bundle.spec_json == spec->bundle.spec_json);
  CHECK(read->bundle.files == spec->bundle.files);
}

TEST_CASE("above the limit the oldest definition goes") {
  const TempDir folder;
  DefinedKernels defined(folder.path(), 2);
  const std::vector specs{rows("a"), rows("b"), rows("c")};
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(2);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    defined.add(*specs[i]);
    std::filesystem::last_write_time(folder.path() / specs[i]->name, old + std::chrono::minutes(i));
  }
  CHECK_FALSE(std::filesystem::exists(folder.path() / specs[0]->name));
  CHECK(std::filesystem::exists(folder.path() / specs[1]->name));
  CHECK(std::filesystem::exists(folder.path() / specs[2]->name));
}

TEST_CASE("what a killed daemon left of a definition is no definition and is replaced") {
  const TempDir folder;
  std::filesystem::create_directory(folder.path() / ".unfinished");
  std::ofstream(folder.path() / ".unfinished" / "half.ttir") << "half";
  DefinedKernels defined(folder.path());
  const auto spec = rows("fp32");
  CHECK(defined.add(*spec));
  CHECK_FALSE(std::filesystem::exists(folder.path() / spec->name / "half.ttir"));
}

}  // namespace
}  // namespace cubind::test
