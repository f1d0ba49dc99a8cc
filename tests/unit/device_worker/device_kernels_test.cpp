#include <catch2/catch.hpp>

#include "base/digest.hpp"
#include "base/file.hpp"
#include "tests/support/paths.hpp"
#include "tuner/worker/own_cubin.hpp"

namespace cubind::worker {
namespace {

TEST_CASE("the checked-in PTX and cubins were made from the checked-in source") {
  const auto folder = test::source_dir() / "tuner" / "worker";
  const std::string source = read_file(folder / "device_kernels.cu");
  for (const char* name : {"device_kernels.ptx", "device_kernels.cubins"}) {
    const std::string made = read_file(folder / name);
    INFO(name << ": run tuner/worker/make_device_kernels.py");
    CHECK(made.substr(0, made.find('\n')).ends_with("SHA-256 " + Digest::of(source).hex()));
  }
}

TEST_CASE("a cubin runs on the later GPUs of its own generation alone") {
  const auto is_cubin = [](const std::optional<std::string>& cubin) {
    return cubin &&
           cubin->starts_with(
               "\x7f"
               "ELF") &&
           cubin->find("cubind_compare") != std::string::npos;
  };
  CHECK(is_cubin(own_cubin(7, 5)));
  CHECK(is_cubin(own_cubin(9, 0)));
  CHECK(is_cubin(own_cubin(12, 1)));
  CHECK(own_cubin(8, 9) == own_cubin(8, 0));
  CHECK(own_cubin(8, 0) != own_cubin(9, 0));
  CHECK_FALSE(own_cubin(7, 0));
  CHECK_FALSE(own_cubin(11, 0));
}

}  // namespace
}  // namespace cubind::worker
