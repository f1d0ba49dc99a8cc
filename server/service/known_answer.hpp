// The short way of GetVariant: it sends an earlier answer again.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <optional>
#include <string>
#include <string_view>

#include "server/access/caller.hpp"
#include "server/service/answer_counts.hpp"
#include "server/service/context.hpp"

namespace cubind {

/// The name under which a reply is kept: the request, and in front of it the namespaces of a caller who is
/// limited to some. So no kept reply reaches a caller whose own question would be refused.
class KeptAs {
 public:
  /// Borrows the request.
  KeptAs(const Caller& caller, std::string_view request);
  std::string_view key() const { return own_.empty() ? request_ : std::string_view(own_); }

 private:
  std::string_view request_;
  std::string own_;
};

/// Gives the answer's quality. `request` is a KeptAs' key. Absent: there is no earlier answer, or it does not
/// hold. A fault of the question shows when the answer is worked out again. Reads the store if the cubin is
/// no longer in RAM, and throws that read's errors.
std::optional<AnswerQuality> answer_again(ServiceContext& context, std::string_view request,
                                          grpc::ByteBuffer& reply);

}  // namespace cubind
