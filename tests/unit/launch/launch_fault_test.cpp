#include "launch/launch_fault.hpp"

#include <catch2/catch.hpp>

using Catch::Matchers::Contains;

namespace cubind::test {
namespace {

cuda::DriverApi driver_of_132_processors() {
  cuda::DriverApi api;
  api.get_error_name = [](cuda::Result, const char** text) { return *text = "NAME", cuda::Result::Success; };
  api.get_error_string = api.get_error_name;
  api.ctx_get_device = [](cuda::DeviceOrdinal* device) { return *device = {}, cuda::Result::Success; };
  api.device_get_attribute = [](int* value, cuda::DeviceAttribute, cuda::DeviceOrdinal) {
    return *value = 132, cuda::Result::Success;
  };
  api.occupancy_max_active_blocks = [](int* blocks, cuda::Function, int threads, std::size_t) {
    return *blocks = 2048 / threads, cuda::Result::Success;
  };
  return api;
}

std::string fault_of(const cuda::DriverApi& api, int result) {
  LaunchShape shape;
  shape.grid = {1000, 2, 1};
  shape.block = {512, 1, 1};
  try {
    throw_launch_fault(api, static_cast<cuda::Result>(result), {}, shape, "launch of sum");
  } catch (const cuda::DriverError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("the fault of a cooperative grid says how many blocks fit") {
  const std::string fault = fault_of(driver_of_132_processors(), 720);
  CHECK_THAT(fault, Contains("launch of sum: a cooperative grid of 2000 blocks; 528 fit the GPU at once"));
}

TEST_CASE("a driver that does not say how many blocks fit makes no other fault") {
  cuda::DriverApi api = driver_of_132_processors();
  api.ctx_get_device = [](cuda::DeviceOrdinal*) { return cuda::Result::NotInitialized; };
  CHECK_THAT(fault_of(api, 720), Contains("fewer fit the GPU at once"));
}

TEST_CASE("the fault of another launch is the driver's") {
  CHECK_THAT(fault_of(driver_of_132_processors(), 719),
             Contains("launch of sum") && !Contains("cooperative"));
}

}  // namespace cubind::test
