#include "server/service/sharer.hpp"

#include <string_view>

#include "server/service/metadata.hpp"

namespace cubind {

std::string process_of(const grpc::CallbackServerContext& call, const std::string& peer) {
  constexpr std::size_t kLongest = 64;
  std::string process = peer;  // "ipv4:127.0.0.1:40000"
  if (process.starts_with("ipv")) {
    process.erase(process.rfind(':'));
  }
  if (const std::string_view named = metadata_of(call, "cubind-caller"); !named.empty()) {
    process.append("/").append(named.substr(0, kLongest));
  }
  return process;
}

std::string sharer_of(const std::string& process, const Caller& caller) {
  return caller.known == Caller::Known::ByToken ? caller.to_string() : process;
}

}  // namespace cubind
