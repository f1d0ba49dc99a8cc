#include "tests/nvrtc/compile_worker/worker_process.hpp"

#include <catch2/catch.hpp>
#include <chrono>

#include "base/framing.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {
namespace {

constexpr std::size_t kMaxFrame = std::size_t{256} << 20;

Subprocess start(const std::string& nvrtc, const std::string& builtins, const UniqueFd& socket) {
  SubprocessOptions options;
  options.program = (bin_dir() / "cubind-worker").string();
  options.arguments = {"compile", "--fd", "3", "--nvrtc", nvrtc, "--builtins", builtins};
  options.fds = {{.fd = socket.get(), .number = 3}};
  return Subprocess::spawn(options);
}

}  // namespace

WorkerProcess::WorkerProcess(const Toolchain& toolchain)
    : WorkerProcess(toolchain.nvrtc.string(), toolchain.builtins.string()) {}

WorkerProcess::WorkerProcess(const std::string& nvrtc, const std::string& builtins)
    : child_([&] {
        auto [mine, theirs] = make_socket_pair();
        socket_ = std::move(mine);
        return start(nvrtc, builtins, theirs);
      }()) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto frame = read_frame_until(socket_.get(), kMaxFrame, deadline);
  REQUIRE(frame.has_value());
  REQUIRE(hello_.ParseFromString(*frame));
}

v1::CompileReply WorkerProcess::compile(const v1::CompileRequest& request) {
  write_frame(socket_.get(), request.SerializeAsString());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto frame = read_frame_until(socket_.get(), kMaxFrame, deadline);
  REQUIRE(frame.has_value());
  v1::CompileReply reply;
  REQUIRE(reply.ParseFromString(*frame));
  return reply;
}

ExitStatus WorkerProcess::finish() {
  socket_.reset();
  return child_.wait();
}

}  // namespace cubind::test
