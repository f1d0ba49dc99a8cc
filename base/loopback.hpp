// Addresses that only processes of this machine reach.
#pragma once

#include <string>
#include <string_view>

namespace cubind {

/// Whether the host before the port, if there is one, is 127.0.0.1, localhost or [::1].
bool is_loopback(std::string_view address);
/// `given`, which is "[HOST:]PORT", with 127.0.0.1 as the default host. Throws Error(InvalidArgument) for
/// another host.
std::string loopback_address(const std::string& option, const std::string& given);

}  // namespace cubind
