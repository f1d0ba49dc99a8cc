// A call that sends parts and gets one reply for all of them.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>

#include "server/service/status.hpp"
#include "server/strand.hpp"

namespace cubind {

/// Takes each part as it comes. After the last one it works on the strand, and the call ends with what that
/// gave. Lives until gRPC needs it no longer.
template <typename Part>
class Upload : public grpc::ServerReadReactor<Part>, public std::enable_shared_from_this<Upload<Part>> {
 public:
  static grpc::ServerReadReactor<Part>* start(const std::shared_ptr<Upload>& upload) {
    upload->self_ = upload;
    upload->StartRead(&upload->part_);
    return upload.get();
  }

  void OnReadDone(bool ok) final {
    if (!ok) {
      strand_.post([self = this->shared_from_this()] { self->Finish(guarded([&] { self->work(); })); });
      return;
    }
    const grpc::Status status = guarded([&] { take(part_); });
    if (status.ok()) {
      this->StartRead(&part_);
    } else {
      this->Finish(status);
    }
  }
  void OnCancel() final { cancelled_ = true; }
  void OnDone() final { self_.reset(); }

 protected:
  explicit Upload(Strand& strand) : strand_(strand) {}

  std::atomic<bool> cancelled_{false};

 private:
  /// Both throw what the caller gets.
  virtual void take(const Part& part) = 0;
  virtual void work() = 0;

  Strand& strand_;
  Part part_;
  std::shared_ptr<Upload> self_;
};

}  // namespace cubind
