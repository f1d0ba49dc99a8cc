// What a caller sends along with a call.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string_view>

namespace cubind {

/// Empty: nothing under this name.
inline std::string_view metadata_of(const grpc::CallbackServerContext& call, const char* name) {
  const auto found = call.client_metadata().find(name);
  return found == call.client_metadata().end() ? std::string_view()
                                               : std::string_view(found->second.data(), found->second.size());
}

}  // namespace cubind
