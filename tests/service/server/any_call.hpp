// Every rpc of the schemas, called without its stub.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>
#include <vector>

namespace google::protobuf {
class MethodDescriptor;
}  // namespace google::protobuf

namespace cubind::test {

using Method = const google::protobuf::MethodDescriptor*;

std::vector<Method> all_methods();
Method method_of(const std::string& name);

/// Whether its messages name a namespace.
bool has_namespace(Method method);
/// A message that names the namespace, where it has one, and nothing else.
std::string message_in(Method method, const std::string& name_space);

/// Sends one message and nothing after it. `token`: empty for none. `is_marked`: whether the status has the
/// daemon's mark.
grpc::Status call(const std::shared_ptr<grpc::Channel>& channel, Method method, const std::string& token,
                  const std::string& message, bool* is_marked = nullptr);

}  // namespace cubind::test
