#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>

namespace cubind::worker {

/// The numbers of the parameters through which a kernel of NVRTC's PTX writes. body: the lines behind its
/// name. Absent: they do not tell, as where the kernel calls a function or writes to an address that it has
/// read from memory. An integer that is part of such an address counts too.
std::optional<std::set<std::uint32_t>> written_parameters(std::string_view symbol, std::string_view body);

}  // namespace cubind::worker
