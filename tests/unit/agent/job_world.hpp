// Everything around a tuning job, in memory: a kernel with 24 configurations, a compiler that always or never
// succeeds, and a daemon that can lose the lease at any batch.
#pragma once

#include <atomic>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "tests/support/manual_clock.hpp"
#include "tests/unit/agent/simulated_device.hpp"
#include "tuner/agent/compile/compiler.hpp"
#include "tuner/agent/lease/job_channel.hpp"
#include "tuner/agent/tuning/trial_log.hpp"
#include "tuner/agent/tuning/tune_job.hpp"

namespace cubind::test {

/// The cubin is the text of the entry, with more behind it or other bytes where the test says so.
class MemoryCompiler final : public Compiler {
 public:
  void want(const Digest& key, CompilePriority priority, const std::function<CompileInput()>& input) override;
  void give_up(const Digest& key) override;
  void raise(const Digest& key, CompilePriority priority) override;
  ResultPtr wait(const Digest& key, std::chrono::milliseconds timeout) override;
  std::uint32_t take_nvrtc_calls(const Digest& key) override;
  ResultPtr find(const Digest& key) override;
  /// As that of an agent that has started again.
  void forget_all();

  std::function<bool(const std::string& entry)> refuses;
  std::function<std::string(const std::string& entry)> more;
  std::function<std::string(const std::string& entry, const std::string& symbol)> cubin;  // empty: the text
  std::function<std::string(const std::string& entry)> mangled;  // its symbol; by default one without types
  std::function<std::uint32_t(const std::string& entry)> launch_shared;  // bytes; by default none
  std::atomic<bool> is_stuck{false};                                     // nothing is ever ready
  std::map<std::string, int> compiled;                                   // by entry
  std::vector<CompilePriority> submitted;                                // with which priorities
  std::vector<CompilePriority> raised;                                   // to which, of those under way
  /// Asked for and not yet waited for.
  std::size_t under_way() const;

 private:
  struct Entry {
    v1::CompileRequest request;
    CompilePriority priority = CompilePriority::Tuning;
    std::size_t wants = 0;
    ResultPtr result = nullptr;
    std::uint32_t nvrtc_calls = 0;
  };
  v1::CompileReply reply_to(const std::string& entry);

  mutable std::mutex mutex_;         // jobs and compiles ahead have threads of their own
  std::map<Digest, Entry> entries_;  // guarded by mutex_
};

/// What a daemon stores of one job. Storing a block twice is refused, as is a block of an unknown trial.
class MemoryChannel final : public JobChannel {
 public:
  /// How the lease is lost: at batch number `die_at` (from 0), before or after it was stored.
  std::size_t die_at = std::numeric_limits<std::size_t>::max();
  bool die_after_storing = false;

  void store(v1::Batch batch) override;
  void settle() override {}
  void progress(const v1::Progress& progress) override;
  void progress_soon(const v1::Progress& report) override { progress(report); }
  std::optional<std::string> fetch_cubin(const Digest& digest) override;
  void put_artifact(const v1::ArtifactInfo& info, const std::string& zstd_cubin) override;

  bool is_awaited() const override { return awaited; }

  /// A lease that holds everything stored.
  v1::LeaseGrant grant() const;
  const v1::TrialHeader* trial(const Configuration& configuration) const;

  std::atomic<bool> awaited{true};
  std::size_t batches = 0;
  v1::Batch lost;  // the batch that was in flight when the lease was lost
  std::map<std::string, v1::TrialHeader> trials;
  std::map<std::tuple<std::string, int, std::uint32_t>, v1::SampleBlock> blocks;
  std::map<std::string, v1::VerificationResult> verifications;
  std::map<std::string, v1::ArtifactUpload> artifacts;
  std::map<std::string, std::string> cubins;
  std::vector<v1::Progress> told;
  std::function<void(const v1::Progress&)> on_told;  // in the job's thread
  std::set<std::string> stages;
  int fetched = 0;
  int put = 0;
  v1::LeaseGrant frame;  // what every lease of the job has
};

/// Of a measurement that shares its batch with others.
inline constexpr std::chrono::milliseconds kQuick{2};

struct World {
  explicit World(Behaviour behaviour);

  /// One lease, from its grant to its result.
  v1::JobResult run();
  /// The same with what was compiled before.
  v1::JobResult run_with_kept_compiles();
  /// The same, where the lease may be lost: absent.
  std::optional<v1::JobResult> try_run();

  MemoryCompiler compiler;
  MemoryChannel channel;
  SimulatedDevice device;
  JobStop stop;
  ManualClock clock;
  std::chrono::milliseconds measuring_takes = kBetweenBatches;  // each: so it is a batch of its own
  KernelBuilds builds;
  TuneJob::Options options;
};

v1::SpecBundle simulated_kernel();
v1::Problem simulated_problem(std::int64_t n);
Configuration configuration(std::int64_t a, std::int64_t b);
/// The configuration of a message, as text.
std::string text(const v1::Configuration& configuration);

/// How many trials of the job ended so.
std::uint32_t count_of(const v1::JobResult& result, v1::Outcome outcome);

/// A=1..6, B=1..4; A=3,B=2 is the fastest at 100 us, each step away costs 20 %.
double bowl(const Configuration& configuration);

}  // namespace cubind::test
