#include <catch2/catch.hpp>

#include "base/digest.hpp"
#include "base/file.hpp"
#include "tests/support/paths.hpp"

namespace cubind::worker {
namespace {

TEST_CASE("the checked-in PTX was made from the checked-in source") {
  const auto folder = test::source_dir() / "tuner" / "worker";
  const std::string ptx = read_file(folder / "device_kernels.ptx");
  const std::string source = read_file(folder / "device_kernels.cu");
  INFO("run tuner/worker/make_device_kernels.py");
  CHECK(ptx.substr(0, ptx.find('\n')).ends_with("SHA-256 " + Digest::of(source).hex()));
}

}  // namespace
}  // namespace cubind::worker
