#include "server/service/caller.hpp"

#include <algorithm>

namespace cubind {

std::string caller_of(const grpc::CallbackServerContext& call) {
  constexpr std::size_t kLongest = 64;
  std::string caller = call.peer();  // "ipv4:127.0.0.1:40000"
  if (caller.starts_with("ipv")) {
    caller.erase(caller.rfind(':'));
  }
  if (const auto named = call.client_metadata().find("cubind-caller");
      named != call.client_metadata().end()) {
    caller += '/' + std::string(named->second.data(), std::min(named->second.size(), kLongest));
  }
  return caller;
}

}  // namespace cubind
