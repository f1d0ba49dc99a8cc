#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/facts/facts.hpp"
#include "plan/launch_plan.hpp"
#include "schemas/agent.pb.h"
#include "tuner/agent/compile/compiler.hpp"
#include "tuner/agent/lease/job_channel.hpp"
#include "tuner/agent/lease/job_stop.hpp"
#include "tuner/spec/keys.hpp"

namespace cubind {

/// The result of compiling one artifact key.
struct Compiled {
  Key key;
  ToolchainIdentity toolchain;
  std::string architecture;
  v1::Outcome outcome = v1::CORRECT;  // CORRECT or COMPILE
  std::string log;
  std::vector<std::string> entries, symbols;  // in launch order
  std::vector<EntryResources> resources;
  Digest cubin_digest;
  std::uint64_t cubin_bytes = 0;
  double compile_ms = 0;
  bool stored = false;  // the daemon has it

  std::string cubin;  // empty: CompileSource::cubin fetches it
};

/// The plan as it is launched: with symbols, and with the shared memory that the compiler decided.
LaunchPlan as_compiled(LaunchPlan plan, const Compiled& compiled);

/// The artifacts of one job. Those of the lease and those that the compiler knows are not compiled again, and
/// compiles run ahead of the questions. Used from the job's thread.
class CompileSource {
 public:
  CompileSource(Compiler& compiles, JobChannel& channel, JobStop& stop,
                const google::protobuf::RepeatedPtrField<v1::ArtifactUpload>& known);
  ~CompileSource();
  CompileSource(const CompileSource&) = delete;
  CompileSource& operator=(const CompileSource&) = delete;

  struct Wanted {
    Key key;
    ToolchainIdentity toolchain;
    std::function<CompileInput()> input;
    CompilePriority priority = CompilePriority::Tuning;  // while a caller waits for the job
  };
  /// Starts the compile unless the artifact is known or under way.
  void want(const Wanted& wanted);
  /// The same, and waits for it.
  const Compiled& get(const Wanted& wanted);
  /// Bytes of an artifact whose outcome is CORRECT; compiled again if the daemon has lost them.
  const std::string& cubin(const Wanted& wanted);
  /// The same without compiling: empty if the daemon has lost them. For a key that get() has answered.
  const std::string& kept_cubin(const Digest& key);
  /// For a key that get() has answered.
  const Compiled& known(const Digest& key) const { return done_.at(key); }
  /// Frees the bytes of a stored artifact; they can be fetched.
  void forget_bytes(const Digest& key);

  /// Adds the artifact to the batch unless the daemon has it; one that makes the batch large is sent ahead.
  /// mark_stored() follows when the batch was sent, and frees the bytes.
  void add_to(v1::Batch& batch, const Digest& key);
  void mark_stored(const Digest& key);

  /// As the workers counted them, without those of compiles that another job has begun and counted.
  unsigned nvrtc_calls() const { return nvrtc_calls_; }

 private:
  void start(const Wanted& wanted);
  /// Compiles of a job leave the background when a caller begins to wait for it.
  void raise_if_awaited();
  Compiled& finish(const Digest& key);

  Compiler& compiles_;
  JobChannel& channel_;
  JobStop& stop_;
  std::map<Digest, Compiled> done_;
  std::map<Digest, Wanted> running_;
  bool in_background_ = false;  // some of running_ began there
  unsigned nvrtc_calls_ = 0;
};

/// The message of an artifact, with its compressed bytes where there are any.
v1::ArtifactUpload upload_of(const Compiled& compiled);

}  // namespace cubind
