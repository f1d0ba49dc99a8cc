// cubind-worker as a process, on machines of all kinds.
#include <catch2/catch.hpp>

#include "base/framing.hpp"
#include "base/subprocess.hpp"
#include "schemas/worker.pb.h"
#include "tests/support/paths.hpp"
#include "tuner/worker/modes.hpp"

namespace cubind::worker {
namespace {

using Catch::Matchers::Contains;

Subprocess start(std::vector<std::string> arguments, int fd = -1) {
  SubprocessOptions options;
  options.program = test::bin_dir() / "cubind-worker";
  options.arguments = std::move(arguments);
  options.stderr_to = ChildStream::Null;
  if (fd >= 0) {
    options.fds.push_back({fd, 3});
  }
  return Subprocess::spawn(options);
}

v1::DeviceReply ask(int fd, const v1::DeviceRequest& request) {
  write_frame(fd, request.SerializeAsString());
  v1::DeviceReply reply;
  REQUIRE(reply.ParseFromString(read_frame(fd, 1 << 20).value()));
  return reply;
}

TEST_CASE("a command line that is wrong ends the worker with the usage status") {
  const auto arguments =
      GENERATE(std::vector<std::string>{}, std::vector<std::string>{"serve", "--fd", "3"},
               std::vector<std::string>{"device", "--fd", "x"}, std::vector<std::string>{"launch"},
               std::vector<std::string>{"device", "--fd", "3", "--nonsense"});
  CHECK(start(arguments).wait().code == static_cast<int>(ExitCode::Usage));
}

TEST_CASE("a request before open is answered and the worker lives on") {
  auto [ours, theirs] = make_socket_pair();
  Subprocess worker = start({"device", "--fd", "3"}, theirs.get());
  theirs.reset();
  v1::DeviceRequest request;
  request.mutable_probe();
  CHECK_THAT(ask(ours.get(), request).detail(), Contains("open comes first"));
  CHECK_THAT(ask(ours.get(), request).detail(), Contains("open comes first"));
  ours.reset();
  CHECK(worker.wait().code == static_cast<int>(ExitCode::Done));
}

TEST_CASE("opening a GPU that is missing says what was tried or what is visible") {
  auto [ours, theirs] = make_socket_pair();
  Subprocess worker = start({"device", "--fd", "3"}, theirs.get());
  theirs.reset();
  v1::DeviceRequest request;
  request.mutable_open()->set_gpu("GPU-00000000-dead-beef");
  const v1::DeviceReply reply = ask(ours.get(), request);
  CHECK(reply.outcome() == v1::OUTCOME_UNSPECIFIED);
  CHECK_THAT(reply.detail(),
             Contains("no NVIDIA driver is here: libcuda.so.1 was not found") || Contains("visible"));
}

}  // namespace
}  // namespace cubind::worker
