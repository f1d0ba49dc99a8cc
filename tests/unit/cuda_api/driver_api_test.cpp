#include "cuda_api/driver_api.hpp"

#include <catch2/catch.hpp>

#include "base/file.hpp"
#include "cuda_api/nvml_api.hpp"
#include "cuda_api/shared_library.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind::cuda {
namespace {

using Catch::Matchers::Contains;

const std::vector<std::string> kNowhere{"libcuda_of_nobody.so.1", "/nowhere/libcuda.so.1"};

TEST_CASE("no driver is absent and told in one sentence without the paths that were tried") {
  std::string why;
  CHECK(find_driver(why, kNowhere) == nullptr);
  CHECK(why == "no NVIDIA driver is here: libcuda_of_nobody.so.1 was not found");
}

TEST_CASE("a driver that is there and does not load is reported with the loader's words") {
  const TempDir folder;
  const std::string broken = (folder.path() / "libcuda.so.1").string();
  write_file_atomic(broken, "no library");
  std::string why;
  CHECK(find_driver(why, {"/nowhere/libcuda.so.1", broken}) == nullptr);
  CHECK_THAT(why, Contains(broken + ": ") && !Contains("/nowhere"));
}

TEST_CASE("a driver that must be there is a failed precondition with the same sentence") {
  const Error error = test::error_of([&] { load_driver(kNowhere); }).value();
  CHECK(error.code() == ErrorCode::FailedPrecondition);
  CHECK_THAT(error.what(), Contains("no NVIDIA driver is here: libcuda_of_nobody.so.1 was not found"));
}

TEST_CASE("a driver that lacks a function is refused with the branch that has it") {
  std::string tried;
  CHECK_THROWS_WITH(find_driver(tried, {CUBIND_FAKE_OLD_DRIVER}), Contains("fake_old_driver") &&
                                                                      Contains("has no cuDriverGetVersion") &&
                                                                      Contains("branch 525"));
}

TEST_CASE("the first candidate that loads is taken") {
  std::string tried;
  const std::vector<std::string> candidates{"/nowhere/libcuda.so.1", CUBIND_FAKE_OLD_DRIVER,
                                            "/nowhere/else.so"};
  const auto library = SharedLibrary::open_first(candidates, tried);
  REQUIRE(library);
  CHECK(library->name() == CUBIND_FAKE_OLD_DRIVER);
  CHECK(library->symbol("cuInit") != nullptr);
  CHECK(library->symbol("cuExit") == nullptr);
}

TEST_CASE("NVML that does not start is absent with its error") {
  std::string tried;
  CHECK(find_nvml(tried, {CUBIND_FAKE_OLD_DRIVER}) == nullptr);
  CHECK_THAT(tried, Contains("nvmlInit fails with 9"));
}

TEST_CASE("NVML is asked and never told to change a clock or anything else") {
#define CUBIND_NAME(member, exported, parameters) #exported,
  const std::vector<std::string> names{CUBIND_NVML_FUNCTIONS(CUBIND_NAME)};
#undef CUBIND_NAME
  const std::vector<std::string> allowed{"nvmlDeviceGet", "nvmlSystemGet", "nvmlInit", "nvmlShutdown",
                                         "nvmlErrorString"};
  for (const std::string& name : names) {
    INFO(name);
    CHECK(std::ranges::any_of(allowed, [&](const std::string& prefix) { return name.starts_with(prefix); }));
  }
}

TEST_CASE("errors that lose the context are distinguished from those that do not") {
  for (const int code : {214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999}) {
    CHECK(is_sticky(Result{code}));
  }
  for (const int code : {0, 1, 2, 200, 209, 500, 600, 701, 801}) {
    CHECK_FALSE(is_sticky(Result{code}));
  }
}

}  // namespace
}  // namespace cubind::cuda
