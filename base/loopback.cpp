#include "base/loopback.hpp"

#include <charconv>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cubind {

bool is_loopback(std::string_view address) {
  const auto colon = address.rfind(':');
  if (colon != std::string_view::npos && address.find(']', colon) == std::string_view::npos) {
    address = address.substr(0, colon);
  }
  return address == "127.0.0.1" || address == "localhost" || address == "[::1]";
}

std::string loopback_address(const std::string& option, const std::string& given) {
  const std::string address = given.find(':') == std::string::npos ? "127.0.0.1:" + given : given;
  const std::string port = address.substr(address.rfind(':') + 1);
  unsigned short number = 0;
  const auto [end, failed] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (failed != std::errc() || end != port.data() + port.size() || !is_loopback(address)) {
    throw Error(
        ErrorCode::InvalidArgument, option + " " + given,
        "is not [HOST:]PORT of this machine alone (127.0.0.1, localhost or [::1]): no password protects it. "
        "A proxy that asks for one may show it elsewhere (docs/web.md)");
  }
  return replaced(address, "localhost", "127.0.0.1");
}

}  // namespace cubind
