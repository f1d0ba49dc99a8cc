#include "tuner/worker/own_cubin.hpp"

#include <string_view>

#include "base/hex.hpp"
#include "base/zstd.hpp"
#include "tuner/worker/device_cubins.hpp"  // made from device_kernels.cubins

namespace cubind::worker {
namespace {

constexpr std::size_t kMaxCubinBytes = std::size_t{1} << 20;
constexpr std::string_view kArchitecture = "sm_";

// The rest of the line that begins with this architecture.
std::optional<std::string_view> line_of(std::string_view text, std::uint32_t architecture) {
  const std::string begin = "\n" + std::string(kArchitecture) + std::to_string(architecture) + " ";
  const std::size_t at = text.find(begin);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view rest = text.substr(at + begin.size());
  return rest.substr(0, rest.find('\n'));
}

}  // namespace

// Machine code runs on its own generation, from its own minor version on.
std::optional<std::string> own_cubin(std::uint32_t cc_major, std::uint32_t cc_minor) {
  for (std::uint32_t minor = cc_minor + 1; minor-- > 0;) {
    if (const auto line = line_of(kDeviceCubins, 10 * cc_major + minor)) {
      return zstd_decompress(bytes_from_hex(*line).value_or(""), kMaxCubinBytes);
    }
  }
  return std::nullopt;
}

}  // namespace cubind::worker
