#include "connect/address.hpp"

#include <sys/un.h>

#include <charconv>
#include <cstddef>
#include <cstdint>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cubind {

void check_address(const std::string& address) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::InvalidArgument, "address", quoted(address) + why);
  };
  if (address.starts_with("unix:/") && address.find_first_not_of('/', 5) != std::string::npos) {
    const std::string path = address.substr(address.starts_with("unix://") ? 7 : 5);
    constexpr std::size_t kLongest = sizeof(sockaddr_un{}.sun_path) - 1;
    if (path.size() > kLongest) {
      refuse(": the path has " + std::to_string(path.size()) + " bytes, a socket's at most " +
             std::to_string(kLongest) + ": start the daemon with --socket in a folder nearer to the root");
    }
    return;
  }
  const std::string target = address.substr(address.starts_with("tls://") ? 6 : 0);
  if (target.find("://") != std::string::npos && !target.starts_with("unix:")) {
    refuse(
        " is a web address, and a daemon is not a web server: write host:port, tls://host:port or "
        "unix:///path");
  }
  const std::size_t colon = target.rfind(':');
  const bool is_tcp = colon != std::string::npos && colon > 0 && colon + 1 < target.size() &&
                      target.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  if (!is_tcp) {
    refuse(" is neither unix:///path/to/socket nor host:port nor tls://host:port");
  }
  // gRPC would connect to the port modulo 65536.
  const std::string port = target.substr(colon + 1);
  std::uint16_t number = 0;
  if (std::from_chars(port.data(), port.data() + port.size(), number).ec != std::errc() || number == 0) {
    refuse(": a port is 1 to 65535");
  }
}

}  // namespace cubind
