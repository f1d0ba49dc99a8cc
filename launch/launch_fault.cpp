#include "launch/launch_fault.hpp"

namespace cubind {
namespace {

constexpr auto kCooperativeLaunchTooLarge = static_cast<cuda::Result>(720);

// How many blocks run at the same time; 0: the driver does not say.
std::uint64_t resident_blocks(const cuda::DriverApi& api, cuda::Function function, const LaunchShape& shape) {
  const auto threads = static_cast<int>(shape.block.x * shape.block.y * shape.block.z);
  int blocks = 0, processors = 0;
  cuda::DeviceOrdinal device{};
  const bool known = api.occupancy_max_active_blocks(&blocks, function, threads, shape.shared_bytes) ==
                         cuda::Result::Success &&
                     api.ctx_get_device(&device) == cuda::Result::Success &&
                     api.device_get_attribute(&processors, cuda::DeviceAttribute::MultiprocessorCount,
                                              device) == cuda::Result::Success;
  return known ? static_cast<std::uint64_t>(blocks) * static_cast<std::uint64_t>(processors) : 0;
}

}  // namespace

void throw_launch_fault(const cuda::DriverApi& api, cuda::Result result, cuda::Function function,
                        const LaunchShape& shape, const std::string& operation) {
  if (result != kCooperativeLaunchTooLarge) {
    throw cuda::DriverError(api, result, operation);
  }
  const std::uint64_t grid = std::uint64_t{shape.grid.x} * shape.grid.y * shape.grid.z;
  const std::uint64_t fit = resident_blocks(api, function, shape);
  throw cuda::DriverError(api, result,
                          operation + ": a cooperative grid of " + std::to_string(grid) + " blocks; " +
                              (fit == 0 ? "fewer" : std::to_string(fit)) +
                              " fit the GPU at once: limit the spec's grid, as in \"min(cdiv(N, THREADS), "
                              "device.sm_count)\", and let each block loop");
}

}  // namespace cubind
