#include "tuner/agent/compile/kernel_builds.hpp"

#include <catch2/catch.hpp>

#include "base/file.hpp"
#include "tests/unit/agent/job_world.hpp"

namespace cubind::test {
namespace {

// A toolkit with one header, and a kernel that includes it.
struct ToolkitFixture {
  TempDir folder;
  KernelBuilds builds{nvrtc_language(toolchain())};

  Toolchain toolchain() {
    write_header("// as it was");
    Toolchain made;
    made.major = 13;
    made.include_folders = {folder.path()};
    return made;
  }
  void write_header(const std::string& text) { write_file_atomic(folder.path() / "cuda_fp16.h", text); }
  // `note` is a comment in its source.
  static v1::SpecBundle kernel(const std::string& note = "") {
    v1::SpecBundle bundle = simulated_kernel();
    for (v1::SourceFile& file : *bundle.mutable_files()) {
      file.set_content("#include <cuda_fp16.h>\n// " + note + "\n");
    }
    return bundle;
  }
};

TEST_CASE("the toolkit's headers are read once for a kernel and not for every job") {
  ToolkitFixture f;
  const auto first = f.builds.of(ToolkitFixture::kernel());
  f.write_header("// another toolkit in the same place");
  const auto second = f.builds.of(ToolkitFixture::kernel());
  CHECK(second == first);
  CHECK(second->request({}).headers == first->request({}).headers);
}

TEST_CASE("a changed source is another build") {
  ToolkitFixture f;
  const auto first = f.builds.of(ToolkitFixture::kernel());
  CHECK(f.builds.of(ToolkitFixture::kernel("changed")) != first);
  CHECK(f.builds.of(ToolkitFixture::kernel()) == first);
}

TEST_CASE("of many kernels the builds that were used last are kept") {
  ToolkitFixture f;
  const std::weak_ptr<const KernelBuild> oldest = f.builds.of(ToolkitFixture::kernel("oldest"));
  const std::weak_ptr<const KernelBuild> used = f.builds.of(ToolkitFixture::kernel("used"));
  for (int i = 0; i < 7; ++i) {
    f.builds.of(ToolkitFixture::kernel(std::to_string(i)));
    f.builds.of(ToolkitFixture::kernel("used"));
  }
  CHECK(oldest.expired());
  CHECK_FALSE(used.expired());
}

}  // namespace
}  // namespace cubind::test
