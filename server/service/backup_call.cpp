#include "server/service/backup_call.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "schemas/limits.hpp"
#include "server/service/raw_message.hpp"
#include "server/service/status.hpp"
#include "server/store/store.hpp"

namespace cubind {

grpc::ServerWriteReactor<grpc::ByteBuffer>* BackupCall::start(ServiceContext& context, OpenCallPtr open) {
  const std::shared_ptr<BackupCall> self(new BackupCall(context, std::move(open)));
  self->self_ = self;
  context.background.post(self->open_->sharer(), [self] {
    const grpc::Status status = guarded([&] { self->copy(); });
    if (status.ok()) {
      self->write_next();
    } else {
      self->Finish(self->open_->ends_with(status));
    }
  });
  return self.get();
}

void BackupCall::copy() {
  refuse_to_go_on(context_, cancelled_);
  copy_ = context_.store.snapshot();
  struct stat info {};
  if (::fstat(copy_.get(), &info) != 0) {
    throw system_error("backup", "fstat", errno);
  }
  size_ = static_cast<std::uint64_t>(info.st_size);
  chunk_.set_total_bytes(size_);
}

void BackupCall::write_next() {
  std::string& data = *chunk_.mutable_data();
  data.resize(std::min<std::uint64_t>(kChunkBytes, size_ - sent_));
  if (::pread(copy_.get(), data.data(), data.size(), static_cast<off_t>(sent_)) !=
      static_cast<ssize_t>(data.size())) {
    Finish(
        to_status(Error(ErrorCode::Unavailable, "backup", "the copy on the daemon's disk cannot be read")));
    return;
  }
  sent_ += data.size();
  bytes_ = print_message(chunk_);
  StartWrite(&bytes_);
}

void BackupCall::OnWriteDone(bool ok) {
  if (!ok) {
    Finish({grpc::StatusCode::CANCELLED, "the caller went away"});
  } else if (sent_ == size_) {
    Finish(grpc::Status::OK);
  } else {
    chunk_.clear_total_bytes();
    write_next();
  }
}

}  // namespace cubind
