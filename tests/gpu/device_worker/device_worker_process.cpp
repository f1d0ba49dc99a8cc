#include "tests/gpu/device_worker/device_worker_process.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/framing.hpp"
#include "cuda_api/device_facts.hpp"
#include "tests/support/gpu_kernels.hpp"
#include "tests/support/paths.hpp"
#include "tuner/toolchain/toolchain.hpp"

namespace cubind::test {
namespace {

constexpr std::size_t kMaxReply = std::size_t{1} << 30;

Subprocess spawn(std::vector<std::string> arguments, int fd) {
  SubprocessOptions options;
  options.program = bin_dir() / "cubind-worker";
  options.arguments = std::move(arguments);
  options.fds.push_back({fd, 3});
  for (char** variable = environ; *variable != nullptr; ++variable) {
    options.environment.emplace_back(*variable);
  }
  return Subprocess::spawn(options);
}

std::pair<UniqueFd, Subprocess> start(std::vector<std::string> arguments) {
  auto [ours, theirs] = make_socket_pair();
  Subprocess process = spawn(std::move(arguments), theirs.get());
  return {std::move(ours), std::move(process)};
}

std::string compile(const std::string& source, const std::string& architecture) {
  FileDigests digests;
  const ToolchainsFound found = find_toolchains(ToolchainSearch::of_process(), digests);
  if (found.toolchains.empty()) {
    FAIL("no NVRTC; name a toolkit by CUBIND_CUDA_HOME");
  }
  const Toolchain& toolchain = found.toolchains.front();
  WorkerProcess worker(
      {"compile", "--fd", "3", "--nvrtc", toolchain.nvrtc, "--builtins", toolchain.builtins});
  REQUIRE(read_frame(worker.fd(), kMaxReply));  // its hello
  v1::CompileRequest request;
  request.set_source_name("kernels.cu");
  request.set_source(source);
  for (const std::string& name : kernel_names(source)) {
    request.add_entries(name);
  }
  request.set_architecture(architecture);
  request.set_max_cubin_bytes(1 << 24);
  request.set_max_log_bytes(1 << 16);
  write_frame(worker.fd(), request.SerializeAsString());
  v1::CompileReply reply;
  REQUIRE(reply.ParseFromString(read_frame(worker.fd(), kMaxReply).value()));
  INFO(reply.log());
  REQUIRE(reply.outcome() == v1::CORRECT);
  return reply.cubin();
}

}  // namespace

WorkerProcess::WorkerProcess(std::vector<std::string> arguments)
    : WorkerProcess(start(std::move(arguments))) {}

std::optional<v1::DeviceReply> WorkerProcess::ask_within(const v1::DeviceRequest& request,
                                                         std::chrono::milliseconds deadline) {
  write_frame(socket_.get(), request.SerializeAsString());
  if (!wait_readable(socket_.get(), std::chrono::steady_clock::now() + deadline)) {
    return std::nullopt;
  }
  const auto frame = read_frame(socket_.get(), kMaxReply);
  if (!frame) {
    FAIL("the worker ended without a reply: " << ended().describe());
  }
  v1::DeviceReply reply;
  REQUIRE(reply.ParseFromString(*frame));
  return reply;
}

v1::DeviceReply WorkerProcess::ask(const v1::DeviceRequest& request) {
  auto reply = ask_within(request, std::chrono::minutes(1));
  REQUIRE(reply);
  return *reply;
}

ExitStatus WorkerProcess::ended() {
  const auto status = process_.wait_until(std::chrono::steady_clock::now() + std::chrono::seconds(10));
  REQUIRE(status);
  return *status;
}

DeviceWorkerProcess::DeviceWorkerProcess(const v1::OpenDevice& open)
    : WorkerProcess({"device", "--fd", "3"}) {
  v1::DeviceRequest request;
  *request.mutable_open() = open;
  const v1::DeviceReply reply = ask(request);
  INFO(reply.DebugString());
  REQUIRE(reply.outcome() == v1::CORRECT);
  REQUIRE_FALSE(reply.foreign_use());
  info_ = reply.info();
}

const std::string& kernels_cubin() {
  static const std::string cubin = [] {
    // Asked of the driver: a worker would need the GPU, which the test's own worker may hold.
    const auto driver = cuda::load_driver();
    const auto facts = cuda::read_device_facts(*driver, nullptr, cuda::select_device(*driver, ""));
    const std::string architecture = "sm_" + std::to_string(facts.cc_major * 10 + facts.cc_minor);
    return compile(gpu_kernels(), architecture);
  }();
  return cubin;
}

}  // namespace cubind::test
