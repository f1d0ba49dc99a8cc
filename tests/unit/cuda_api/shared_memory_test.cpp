#include "cuda_api/shared_memory.hpp"

#include <catch2/catch.hpp>
#include <vector>

namespace cubind::cuda {
namespace {

// A driver with one function, which has 20 KB of static shared memory on a device that gives a block 64 KB.
int limit;
std::vector<int> asked;

DriverApi driver() {
  limit = (48 << 10) - (20 << 10);
  asked.clear();
  DriverApi api;
  api.func_get_attribute = [](int* value, FunctionAttribute which, Function) {
    if (which != FunctionAttribute::MaxDynamicSharedBytes) {
      return Result::InvalidValue;
    }
    *value = limit;
    return Result::Success;
  };
  api.func_set_attribute = [](Function, FunctionAttribute, int value) {
    asked.push_back(value);
    if (value > (64 << 10) - (20 << 10)) {
      return Result::InvalidValue;
    }
    limit = value;
    return Result::Success;
  };
  api.get_error_name = [](Result, const char** text) { return *text = "NAME", Result::Success; };
  api.get_error_string = [](Result, const char** text) { return *text = "text", Result::Success; };
  return api;
}

TEST_CASE("static shared memory counts against what needs no asking") {
  const DriverApi api = driver();
  allow_shared_memory(api, nullptr, 28 << 10, "k");
  CHECK(asked.empty());
  allow_shared_memory(api, nullptr, 40 << 10, "k");
  CHECK(asked == std::vector{40 << 10});
}

TEST_CASE("the limit of shared memory is only ever raised") {
  const DriverApi api = driver();
  allow_shared_memory(api, nullptr, 40 << 10, "k");
  allow_shared_memory(api, nullptr, 30 << 10, "k");
  CHECK(limit == 40 << 10);
}

TEST_CASE("more shared memory than the device has is refused with kernel and size") {
  CHECK_THROWS_WITH(allow_shared_memory(driver(), nullptr, 60 << 10, "k"),
                    Catch::Contains("k with 61440 bytes of dynamic shared memory"));
}

}  // namespace
}  // namespace cubind::cuda
