#include "client/cubindctl/profile/variant_profile.hpp"

#include <algorithm>
#include <numeric>

namespace cubind::ctl {

double VariantProfile::time_us() const {
  return std::transform_reduce(launches.begin(), launches.end(), 0.0, std::plus(),
                               [](const ProfiledLaunch& launch) { return launch.time_us; });
}

double VariantProfile::moved_bytes() const {
  return std::transform_reduce(launches.begin(), launches.end(), 0.0, std::plus(),
                               [](const ProfiledLaunch& launch) { return launch.moved_bytes(); });
}

std::optional<double> VariantProfile::traffic_ratio() const {
  if (work.bytes.value_or(0) == 0) {
    return std::nullopt;
  }
  return moved_bytes() / static_cast<double>(*work.bytes);
}

const ProfiledLaunch& VariantProfile::slowest() const {
  return *std::ranges::max_element(launches, {}, &ProfiledLaunch::time_us);
}

}  // namespace cubind::ctl
