#include "server/service/sharer.hpp"

#include <string_view>

#include "server/service/metadata.hpp"

namespace cubind {

std::string sharer_of(const grpc::CallbackServerContext& call, const std::string& peer,
                      const Caller& caller) {
  if (caller.known == Caller::Known::ByToken) {
    return caller.to_string();
  }
  constexpr std::size_t kLongest = 64;
  std::string sharer = peer;  // "ipv4:127.0.0.1:40000"
  if (sharer.starts_with("ipv")) {
    sharer.erase(sharer.rfind(':'));
  }
  if (const std::string_view named = metadata_of(call, "cubind-caller"); !named.empty()) {
    sharer.append("/").append(named.substr(0, kLongest));
  }
  return sharer;
}

}  // namespace cubind
