#include <catch2/catch.hpp>
#include <thread>

#include "base/error.hpp"
#include "base/framing.hpp"
#include "tuner/worker/device_worker.hpp"

namespace cubind::worker {
namespace {

using Catch::Matchers::Contains;

// Answers each request with its name.
class FakeDevice final : public DeviceBackend {
 public:
  v1::DeviceReply open(const v1::OpenDevice&) override { return named("open"); }
  v1::DeviceReply prepare(const v1::PrepareProblem&) override {
    throw Error(ErrorCode::InvalidArgument, "prepare", "nothing fits");
  }
  v1::DeviceReply load(const v1::LoadTrial&) override { return named("load"); }
  v1::DeviceReply verify(const v1::VerifyTrial&) override { return named("verify"); }
  v1::DeviceReply measure(const v1::MeasureTrials&) override {
    v1::DeviceReply reply = named("measure");
    reply.set_outcome(v1::RUNTIME);
    reply.set_sticky(true);
    return reply;
  }
  void unload(std::uint32_t trial) override { unloaded_ += std::to_string(trial) + " "; }
  v1::DeviceReply release(const v1::ReleaseProblem&) override { return named("release"); }
  v1::DeviceReply probe(const v1::ProbeDevice&) override { return named((unloaded_ + "probe").c_str()); }

 private:
  static v1::DeviceReply named(const char* name) {
    v1::DeviceReply reply;
    reply.set_outcome(v1::CORRECT);
    reply.set_detail(name);
    return reply;
  }

  std::string unloaded_;
};

// The loop on a thread of its own, and its peer.
class Loop {
 public:
  Loop()
      : sockets_(make_socket_pair()),
        thread_([this] { code_ = serve_device(sockets_.second.get(), device_); }) {}
  ~Loop() { end(); }

  v1::DeviceReply ask(const std::string& frame) {
    write_frame(sockets_.first.get(), frame);
    v1::DeviceReply reply;
    REQUIRE(reply.ParseFromString(read_frame(sockets_.first.get(), 1 << 20).value()));
    return reply;
  }
  v1::DeviceReply ask(const v1::DeviceRequest& request) { return ask(request.SerializeAsString()); }
  ExitCode end() {
    sockets_.first.reset();
    return wait();
  }
  ExitCode wait() {
    if (thread_.joinable()) {
      thread_.join();
    }
    return code_;
  }

 private:
  FakeDevice device_;
  ExitCode code_ = ExitCode::Fault;
  std::pair<UniqueFd, UniqueFd> sockets_;
  std::thread thread_;
};

template <typename Set>
v1::DeviceRequest request(Set set) {
  v1::DeviceRequest made;
  set(made);
  return made;
}

TEST_CASE("each request reaches its method and the end of the socket ends the loop") {
  Loop loop;
  CHECK(loop.ask(request([](auto& r) { r.mutable_open(); })).detail() == "open");
  CHECK(loop.ask(request([](auto& r) { r.mutable_load(); })).detail() == "load");
  CHECK(loop.ask(request([](auto& r) { r.mutable_verify(); })).detail() == "verify");
  CHECK(loop.ask(request([](auto& r) { r.mutable_release(); })).detail() == "release");
  CHECK(loop.ask(request([](auto& r) { r.mutable_probe(); })).detail() == "probe");
  CHECK(loop.end() == ExitCode::Done);
}

TEST_CASE("what a request unloads is unloaded before its body is done") {
  Loop loop;
  const auto probe = request([](auto& r) {
    r.add_unload(7);
    r.add_unload(3);
    r.mutable_probe();
  });
  CHECK(loop.ask(probe).detail() == "7 3 probe");
}

TEST_CASE("an error of the device is a reply without an outcome and the loop goes on") {
  Loop loop;
  const v1::DeviceReply reply = loop.ask(request([](auto& r) { r.mutable_prepare(); }));
  CHECK(reply.outcome() == v1::OUTCOME_UNSPECIFIED);
  CHECK(reply.detail() == "prepare: nothing fits");
  CHECK(loop.ask(request([](auto& r) { r.mutable_probe(); })).detail() == "probe");
}

TEST_CASE("a frame that is no request is answered and the loop goes on") {
  Loop loop;
  CHECK_THAT(loop.ask("\xff\xff garbage").detail(), Contains("not a DeviceRequest"));
  CHECK_THAT(loop.ask(v1::DeviceRequest()).detail(), Contains("without a body"));
  CHECK(loop.ask(request([](auto& r) { r.mutable_probe(); })).detail() == "probe");
}

TEST_CASE("a sticky reply is the last one") {
  Loop loop;
  CHECK(loop.ask(request([](auto& r) { r.mutable_measure(); })).sticky());
  CHECK(loop.wait() == ExitCode::ContextLost);
}

}  // namespace
}  // namespace cubind::worker
