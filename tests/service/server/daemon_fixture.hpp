// A daemon in this process with a store of its own, spoken to over its Unix socket.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "schemas/agent.grpc.pb.h"
#include "schemas/cubind.grpc.pb.h"
#include "server/config.hpp"
#include "tests/fakes/agent/fake_agent.hpp"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind {
class Daemon;
struct ServiceContext;
}  // namespace cubind

namespace cubind::test {

struct Got {
  grpc::Status status;
  v1::GetVariantReply reply;
};

class DaemonFixture {
 public:
  DaemonFixture();
  ~DaemonFixture();

  /// As if it were killed and started again: the same store and socket. `between` is done while there is
  /// none.
  void restart(const std::function<void()>& between = {});
  void stop();
  /// The database behind the daemon's back, as flipped bits on the disk would.
  void damage(const std::string& sql) const;
  void damage_cubins() const { damage("UPDATE blobs SET zstd = x'00'"); }

  std::string address() const;
  int port() const;
  int metrics_port() const;
  ServiceContext& context();
  v1::Cubind::Stub& stub() { return *stub_; }
  Config& config() { return config_; }
  const std::filesystem::path& folder() const { return folder_.path(); }

  Got get(const v1::GetVariantRequest& request, std::chrono::seconds deadline = kPatience);
  /// The events until the stream ends.
  std::vector<v1::TuneEvent> tune(const v1::TuneRequest& request, grpc::Status* status = nullptr);
  std::vector<v1::Job> jobs(bool include_ended = false);
  v1::GetStatusReply status();
  grpc::Status define(const SpecBundle& bundle, v1::DefineKernelReply* reply = nullptr);
  /// Waits until the condition holds.
  static void eventually(const std::function<bool()>& condition);

 private:
  void start();

  TempDir folder_;
  Config config_;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<v1::Cubind::Stub> stub_;
};

/// vector_add of N f32, on an H200 with driver 580.
v1::GetVariantRequest vector_add(std::int64_t n, const v1::DeviceFacts& facts = h200_facts());
v1::TuneRequest tune_vector_add(const std::vector<std::int64_t>& sizes,
                                const v1::DeviceFacts& facts = h200_facts());

/// A check of its spec as mine.json, for 4096.
v1::CheckKernelRequest check_vector_add();

/// A daemon that has measured vector_add of 4096 f32, with the agent that did it.
struct TunedDaemon : DaemonFixture {
  TunedDaemon() : agent(address(), hello_with(h200_facts())) { tune(tune_vector_add({4096})); }
  AutoAgent agent;
};

/// DefineKernel: the spec in the first part, each file in one of its own. `reply` may be null.
grpc::Status define_kernel(v1::Cubind::Stub& stub, grpc::ClientContext& context, const SpecBundle& bundle,
                           v1::DefineKernelReply* reply = nullptr);

}  // namespace cubind::test
