#include "launch/tensor_map.hpp"

#include <array>
#include <bit>

#include "base/text.hpp"

namespace cubind {
namespace {

// The driver's enumerators: 0, then 1 for the smallest, 2 for twice of it, and so on.
int enumerator(std::int64_t bytes, unsigned smallest) {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(bytes) / smallest));
}

template <typename To>
std::array<To, kMaxTensorMapAxes> converted(const TensorMap::Axes& from) {
  std::array<To, kMaxTensorMapAxes> to{};
  for (std::size_t i = 0; i < from.size(); ++i) {
    to[i] = static_cast<To>(from[i]);
  }
  return to;
}

}  // namespace

cuda::TensorMap encode(const cuda::DriverApi& api, const TensorMap& map, cuda::DevicePtr base,
                       const std::string& buffer) {
  const auto sizes = converted<std::uint64_t>(map.sizes), strides = converted<std::uint64_t>(map.strides);
  const auto box = converted<std::uint32_t>(map.box), steps = converted<std::uint32_t>(map.element_strides);
  cuda::TensorMap encoded;
  const cuda::Result result = api.tensor_map_encode_tiled(
      &encoded, static_cast<int>(map.type), map.axes, reinterpret_cast<void*>(base), sizes.data(),  // NOLINT
      strides.data(), box.data(), steps.data(), enumerator(map.interleave, 16), enumerator(map.swizzle, 32),
      enumerator(map.l2_promotion, 64), map.nan_fill ? 1 : 0);
  if (result != cuda::Result::Success) {
    cuda::check(api, result,
                "encoding the tensor map " + map.argument + " of " + buffer + ": " + to_string(map));
  }
  return encoded;
}

}  // namespace cubind
