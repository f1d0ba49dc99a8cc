// A unary call that one function answers.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <utility>

#include "server/service/context.hpp"
#include "server/service/open_call.hpp"
#include "server/service/raw_message.hpp"
#include "server/service/status.hpp"

namespace cubind {

/// Deletes itself when gRPC needs it no longer: until then the reply counts in the caller's limits.
template <typename Request, typename Reply>
class AnswerCall final : public grpc::ServerUnaryReactor {
 public:
  AnswerCall(OpenCallPtr open, Request request, grpc::ByteBuffer& reply)
      : open_(std::move(open)), request_(std::move(request)), reply_(reply) {}

  /// Ends with the reply that `body(open call, request, reply)` fills, or with what it throws. Runs
  /// nothing if the caller has withdrawn meanwhile.
  template <typename Body>
  void answer(Body&& body) {
    const grpc::Status status = guarded([&] {
      refuse_withdrawn(cancelled_);
      Reply reply;
      body(std::as_const(*open_), std::as_const(request_), reply);
      reply_ = print_message(reply);
      open_->hold_bytes(reply_.Length());
    });
    Finish(open_->ends_with(status));
  }
  void OnCancel() override { cancelled_ = true; }
  void OnDone() override { delete this; }

 private:
  const OpenCallPtr open_;
  const Request request_;
  grpc::ByteBuffer& reply_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace cubind
