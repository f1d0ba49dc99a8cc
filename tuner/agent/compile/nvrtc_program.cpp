#include <utility>

#include "base/error.hpp"
#include "plan/answer_wire.hpp"
#include "tuner/agent/compile/compiler_program.hpp"

namespace cubind {
namespace {

// With the texts of the shared headers if the worker has not got them.
v1::CompileRequest with_headers(const CompileInput& input, bool worker_has_them) {
  v1::CompileRequest request = input.request;
  if (!input.headers) {
    return request;
  }
  v1::HeaderSet& set = *request.mutable_header_set();
  set.set_digest(bytes_of(input.headers->digest));
  if (!worker_has_them) {
    for (const SharedFile& file : input.headers->files) {
      v1::SourceFile& header = *set.add_files();
      header.set_path(file->name);
      header.set_content(file->content);
    }
  }
  return request;
}

class NvrtcProgram final : public CompilerProgram {
 public:
  NvrtcProgram(std::string worker, std::string nvrtc, std::string builtins)
      : worker_(std::move(worker)), nvrtc_(std::move(nvrtc)), builtins_(std::move(builtins)) {}

  Command command(int fd, std::chrono::milliseconds deadline) const override {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(deadline).count() + 1;
    return {.program = worker_,
            .arguments = {"compile", "--fd", std::to_string(fd), "--nvrtc", nvrtc_, "--builtins", builtins_,
                          "--cpu-seconds", std::to_string(seconds)}};
  }

  v1::CompileWorkerHello hello(const std::string& frame) const override {
    return parsed<v1::CompileWorkerHello>(frame);
  }

  std::string request(const CompileInput& input, bool worker_has_headers) const override {
    return with_headers(input, worker_has_headers).SerializeAsString();
  }

  v1::CompileReply reply(const std::string& frame, const CompileInput&) const override {
    return parsed<v1::CompileReply>(frame);
  }

 private:
  template <typename Message>
  static Message parsed(const std::string& frame) {
    Message message;
    if (!message.ParseFromString(frame)) {
      throw Error(ErrorCode::Internal, "compile worker", "sent something that is not a message");
    }
    return message;
  }

  const std::string worker_, nvrtc_, builtins_;
};

}  // namespace

std::shared_ptr<const CompilerProgram> nvrtc_program(std::string worker, std::string nvrtc,
                                                     std::string builtins) {
  return std::make_shared<const NvrtcProgram>(std::move(worker), std::move(nvrtc), std::move(builtins));
}

}  // namespace cubind
