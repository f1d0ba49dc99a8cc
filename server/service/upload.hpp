// A call that sends parts and gets one reply for all of them.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "server/service/idle_end.hpp"
#include "server/service/open_call.hpp"
#include "server/service/raw_message.hpp"
#include "server/service/status.hpp"

namespace cubind {

/// Takes each part as it comes. After the last one it works where `post` says, and the call ends with what
/// that gave. A caller that sends nothing for ServiceContext::longest_pause has given up. Lives until gRPC
/// needs it no longer.
template <typename Part, typename Reply>
class Upload : public grpc::ServerReadReactor<grpc::ByteBuffer>,
               public std::enable_shared_from_this<Upload<Part, Reply>> {
 public:
  using Post = std::function<void(Strand::Function)>;

  static grpc::ServerReadReactor<grpc::ByteBuffer>* start(const std::shared_ptr<Upload>& upload) {
    upload->self_ = upload;
    upload->idle_end_ = IdleEnd::start(upload->context_, [weak = upload->weak_from_this()] {
      if (const auto self = weak.lock()) {
        self->end_idle();
      }
    });
    upload->StartRead(&upload->bytes_);
    return upload.get();
  }

  void OnReadDone(bool ok) final {
    if (ended_) {
      return;
    }
    if (!ok) {
      is_complete_ = true;
      post_([self = this->shared_from_this()] { self->finish(guarded([&] { self->reply(); })); });
      return;
    }
    idle_end_->went_on();
    const grpc::Status status = guarded([&] { take_part(); });
    if (status.ok()) {
      StartRead(&bytes_);
    } else {
      finish(status);
    }
  }
  void OnCancel() final { cancelled_ = true; }
  void OnDone() final { self_.reset(); }

 protected:
  Upload(ServiceContext& context, OpenCallPtr open, grpc::ByteBuffer& reply, Post post)
      : context_(context), open_(std::move(open)), reply_bytes_(reply), post_(std::move(post)) {}

  ServiceContext& context_;
  const OpenCallPtr open_;
  std::atomic<bool> cancelled_{false};

 private:
  /// Both throw what the caller gets.
  virtual void take(const Part& part) = 0;
  virtual void work(Reply& reply) = 0;

  void take_part() {
    ++parts_;
    open_->hold_bytes(bytes_.Length());
    take(parse_message<Part>(bytes_, "part " + std::to_string(parts_)));
  }

  void reply() {
    Reply reply;
    work(reply);
    reply_bytes_ = print_message(reply);
  }

  void end_idle() {
    if (!is_complete_) {
      const std::string pause = std::to_string(context_.longest_pause.count());
      finish({grpc::StatusCode::DEADLINE_EXCEEDED,
              "upload: no part came for " + pause + " ms: send all parts again"});
    }
  }

  void finish(const grpc::Status& status) {
    if (!ended_.exchange(true)) {
      Finish(open_->ends_with(status));
    }
  }

  grpc::ByteBuffer& reply_bytes_;
  const Post post_;
  grpc::ByteBuffer bytes_;  // of the latest part
  std::uint64_t parts_ = 0;
  std::atomic<bool> is_complete_{false}, ended_{false};
  std::shared_ptr<IdleEnd> idle_end_;
  std::shared_ptr<Upload> self_;
};

}  // namespace cubind
