#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>

namespace cubind::worker {

/// Numbers of parameters. Absent: the PTX does not tell, as where the kernel calls a function.
struct ParameterUses {
  /// Those through which it writes. Absent also if it writes to an address that it has read from memory. An
  /// integer that is part of such an address counts too.
  std::optional<std::set<std::uint32_t>> written;
  /// Those through which it may read, or whose address it stores.
  std::optional<std::set<std::uint32_t>> loaded;
};

/// Of a kernel of NVRTC's PTX. body: the lines behind its name.
ParameterUses parameter_uses(std::string_view symbol, std::string_view body);

}  // namespace cubind::worker
