#include "tests/fakes/agent/fake_agent.hpp"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <list>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "schemas/agent.grpc.pb.h"
#include "tuner/spec/wire.hpp"

namespace cubind::test {

struct FakeAgent::State {
  std::unique_ptr<v1::AgentService::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::DaemonMessage>> stream;
  std::thread reader, beater;
  std::uint64_t last_sequence = 0;
  v1::Welcome welcome;
  std::string driver = kFakeDriver;  // of the GPU that it offers

  std::mutex writing;  // held while a message is written
  std::mutex mutex;
  std::condition_variable changed;
  std::list<v1::DaemonMessage> inbox;  // guarded by mutex
  bool ended = false;                  // guarded by mutex
  bool silent = false;                 // guarded by mutex
  grpc::Status status;                 // guarded by mutex, once ended

  using Wanted = std::function<bool(const v1::DaemonMessage&)>;

  /// The first message that is wanted; others stay.
  std::optional<v1::DaemonMessage> take(const Wanted& wanted, std::chrono::milliseconds time) {
    std::unique_lock lock(mutex);
    auto found = inbox.end();
    changed.wait_for(lock, time, [&] {
      found = std::ranges::find_if(inbox, wanted);
      return found != inbox.end() || ended;
    });
    if (found == inbox.end()) {
      return std::nullopt;
    }
    v1::DaemonMessage message = std::move(*found);
    inbox.erase(found);
    return message;
  }

  v1::DaemonMessage must_take(const char* what, const Wanted& wanted) {
    auto message = take(wanted, kPatience);
    if (!message) {
      throw std::runtime_error(std::string("the daemon sent no ") + what);
    }
    return std::move(*message);
  }

  void read_all() {
    v1::DaemonMessage message;
    while (stream->Read(&message)) {
      const std::lock_guard lock(mutex);
      inbox.push_back(message);
      changed.notify_all();
    }
    const grpc::Status last = stream->Finish();
    const std::lock_guard lock(mutex);
    status = last;
    ended = true;
    changed.notify_all();
  }

  void send(const v1::AgentMessage& message) {
    const std::lock_guard lock(writing);
    stream->Write(message);
  }

  void beat(std::chrono::milliseconds every) {
    v1::AgentMessage heartbeat;
    heartbeat.mutable_heartbeat();
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, every, [&] { return silent || ended; })) {
      lock.unlock();
      send(heartbeat);
      lock.lock();
    }
  }

  bool send_and_wait(v1::AgentMessage message) {
    message.set_sequence(++last_sequence);
    const std::string lease = message.lease_id();
    const std::uint64_t sequence = message.sequence();
    send(message);
    const auto answer = must_take("acknowledgement", [&](const v1::DaemonMessage& item) {
      return (item.has_ack() && item.ack().sequence() == sequence) ||
             (item.has_end_lease() && item.end_lease().lease_id() == lease);
    });
    return answer.has_ack();
  }
};

namespace {

v1::AgentMessage message_for(const v1::LeaseGrant& lease) {
  v1::AgentMessage message;
  message.set_lease_id(lease.lease_id());
  message.set_fence(lease.fence());
  return message;
}

}  // namespace

FakeAgent::FakeAgent(const std::string& address, const v1::Hello& hello) : state_(std::make_unique<State>()) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  state_->stub = v1::AgentService::NewStub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  state_->stream = state_->stub->Serve(&state_->context);
  state_->reader = std::thread([this] { state_->read_all(); });
  v1::AgentMessage message;
  *message.mutable_hello() = hello;
  if (hello.devices_size() > 0) {
    state_->driver = hello.devices(0).driver().version();
  }
  state_->send(message);
  const auto welcome =
      state_->take([](const v1::DaemonMessage& item) { return item.has_welcome(); }, kPatience);
  if (welcome) {
    state_->welcome = welcome->welcome();
    state_->beater = std::thread([this, every = welcome->welcome().heartbeat_ms()] {
      state_->beat(std::chrono::milliseconds(every));
    });
  }
}

FakeAgent::~FakeAgent() {
  fall_silent();
  state_->context.TryCancel();
  state_->reader.join();
}

void FakeAgent::fall_silent() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->silent = true;
  }
  state_->changed.notify_all();
  if (state_->beater.joinable()) {
    state_->beater.join();
  }
}

const v1::Welcome& FakeAgent::welcome() const { return state_->welcome; }

v1::LeaseGrant FakeAgent::wait_for_lease() {
  auto lease = try_lease(kPatience);
  if (!lease) {
    throw std::runtime_error("no lease came");
  }
  return *std::move(lease);
}

std::optional<v1::LeaseGrant> FakeAgent::try_lease(std::chrono::milliseconds time) {
  v1::LeaseGrant lease;
  while (true) {
    const auto message = state_->take([](const v1::DaemonMessage& item) { return item.has_lease(); }, time);
    if (!message) {
      return std::nullopt;
    }
    lease.MergeFrom(message->lease());
    if (!message->lease().more()) {
      return lease;
    }
  }
}

v1::EndLease FakeAgent::wait_for_end_of_lease() {
  return state_
      ->must_take("end of the lease", [](const v1::DaemonMessage& item) { return item.has_end_lease(); })
      .end_lease();
}

v1::Awaited FakeAgent::wait_for_awaited() {
  return state_->must_take("awaited", [](const v1::DaemonMessage& item) { return item.has_awaited(); })
      .awaited();
}

void FakeAgent::wait_for_drain() {
  state_->must_take("drain", [](const v1::DaemonMessage& item) { return item.has_drain(); });
}

v1::CheckOrder FakeAgent::wait_for_check() {
  return state_->must_take("check", [](const v1::DaemonMessage& item) { return item.has_check(); }).check();
}

void FakeAgent::send_progress(const v1::LeaseGrant& lease, const std::string& stage, v1::Job::State state) {
  v1::AgentMessage message = message_for(lease);
  message.mutable_progress()->set_stage(stage);
  message.mutable_progress()->set_state(state);
  state_->send(message);
}

bool FakeAgent::send_batch(const v1::LeaseGrant& lease, const v1::Batch& batch) {
  v1::AgentMessage message = message_for(lease);
  *message.mutable_batch() = batch;
  return state_->send_and_wait(std::move(message));
}

bool FakeAgent::send_result(const v1::LeaseGrant& lease, const v1::JobResult& result) {
  v1::AgentMessage message = message_for(lease);
  *message.mutable_result() = result;
  return state_->send_and_wait(std::move(message));
}

bool FakeAgent::fail(const v1::LeaseGrant& lease, const std::string& error) {
  v1::JobResult failed;
  failed.set_status(v1::JobResult::FAILED);
  failed.set_error(error);
  return send_result(lease, failed);
}

void FakeAgent::send_devices(const v1::OfferedDevices& devices) {
  v1::AgentMessage message;
  *message.mutable_devices() = devices;
  if (devices.devices_size() > 0) {
    state_->driver = devices.devices(0).driver().version();
  }
  state_->send(message);
}

void FakeAgent::send_leaving() {
  v1::AgentMessage message;
  message.mutable_leaving();
  state_->send(message);
}

void FakeAgent::send_check(const v1::CheckResult& result) {
  v1::AgentMessage message;
  *message.mutable_check() = result;
  state_->send(message);
}

std::string FakeAgent::put_artifact(const v1::ArtifactInfo& info, const std::string& zstd_cubin) {
  grpc::ClientContext context;
  v1::PutArtifactReply reply;
  const auto writer = state_->stub->PutArtifact(&context, &reply);
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  for (std::size_t sent = 0; sent < zstd_cubin.size(); sent += kChunk) {
    v1::ArtifactChunk chunk;
    if (sent == 0) {
      *chunk.mutable_info() = info;
    }
    chunk.set_data(zstd_cubin.substr(sent, kChunk));
    if (!writer->Write(chunk)) {
      break;
    }
  }
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  return status.ok() ? "" : status.error_message();
}

bool FakeAgent::tune(const v1::LeaseGrant& lease, std::size_t configurations) {
  const auto trials = fake_trials(lease, configurations, toolchain_for(lease), state_->driver);
  v1::JobResult result = result_of(lease, trials.front());
  result.mutable_search()->set_trials(trials.size());
  result.mutable_search()->set_complete(configurations > trials.size());
  return send_batch(lease, batch_of(trials)) && send_result(lease, result);
}

bool FakeAgent::compile(const v1::LeaseGrant& lease, std::string_view toolchain) {
  const ToolchainIdentity by = toolchain.empty() ? toolchain_for(lease) : fake_toolchain(toolchain);
  v1::Batch batch;
  for (int i = 0; i < lease.listed_size(); ++i) {
    const Configuration configuration = configuration_from_wire(lease.listed(i), "listed");
    *batch.add_artifacts() = fake_trial(lease, configuration, by).artifact;
  }
  v1::JobResult done;
  done.set_status(v1::JobResult::DONE);
  return send_batch(lease, batch) && send_result(lease, done);
}

std::string FakeAgent::wait_for_end() {
  std::unique_lock lock(state_->mutex);
  if (!state_->changed.wait_for(lock, kPatience, [&] { return state_->ended; })) {
    throw std::runtime_error("the stream did not end");
  }
  return state_->status.error_message();
}

struct AutoAgent::State {
  State(const std::string& address, const v1::Hello& hello) : agent(address, hello) {}
  FakeAgent agent;
  std::atomic<bool> stopping{false};
  std::atomic<std::size_t> tuned{0}, compiled{0};
  std::thread thread;
};

AutoAgent::AutoAgent(const std::string& address, const v1::Hello& hello)
    : state_(std::make_unique<State>(address, hello)) {
  state_->thread = std::thread([state = state_.get()] {
    while (!state->stopping) {
      const auto lease = state->agent.try_lease(std::chrono::milliseconds(20));
      if (!lease) {
        continue;
      }
      if (lease->kind() == v1::Job::TUNE) {
        ++state->tuned;  // before its end is known
        state->agent.tune(*lease);
      } else {
        ++state->compiled;
        state->agent.compile(*lease);
      }
    }
  });
}

AutoAgent::~AutoAgent() {
  state_->stopping = true;
  state_->thread.join();
}

std::size_t AutoAgent::tuned() const { return state_->tuned; }

std::size_t AutoAgent::compiled() const { return state_->compiled; }

}  // namespace cubind::test
