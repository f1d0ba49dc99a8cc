#include "tests/unit/agent/job_world.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/zstd.hpp"
#include "plan/wire.hpp"

namespace cubind::test {
namespace {

constexpr char kSpec[] = R"json({
  "name": "simulated", "source": "simulated.cu",
  "problem": {"dims": {"N": "rows"}, "types": {"T": ["f32"]}, "bucket": {"N": {"edges": [256, 1024]}}},
  "tunables": {"A": [1, 2, 3, 4, 5, 6], "B": [1, 2, 3, 4]},
  "constraints": ["A * B <= 24"],
  "default": [{"A": 1, "B": 1}],
  "arguments": {
    "x": {"buffer": "T", "extent": "N", "role": "in", "fill": "normal"},
    "y": {"buffer": "T", "extent": "N", "role": "out"}},
  "launches": [{"entry": "simulated<{T}, {A}, {B}>", "arguments": ["x", "y"], "grid": ["cdiv(N, A)"], "block": ["32"]
}],
  "reference": {"source": "reference.cu",
    "launches": [{"entry": "reference<{T}>", "arguments": ["x", "y"], "grid": ["N"], "block": ["32"]}]},
  "tolerance": {
  "f32" : { "rtol" : 1e-5, "atol" : 1e-6 }
}
})json";

v1::LeaseGrant make_frame() {
  v1::LeaseGrant lease;
  lease.set_lease_id("lease-1");
  *lease.mutable_spec() = simulated_kernel();
  to_wire(parse_problem("N=1024,T=f32"), *lease.mutable_problem());
  lease.set_device_class(std::string(Digest::of("class").view()));
  lease.set_job_key(std::string(Digest::of("job").view()));
  return lease;
}

const Toolchain& toolchain() {
  static const Toolchain one = [] {
    Toolchain made;
    made.major = 13;
    made.nvrtc_digest = Digest::of("nvrtc");
    made.builtins_digest = Digest::of("builtins");
    return made;
  }();
  return one;
}

}  // namespace

v1::SpecBundle simulated_kernel() {
  v1::SpecBundle bundle;
  bundle.set_file("simulated.json");
  bundle.set_spec_json(kSpec);
  for (const char* path : {"reference.cu", "simulated.cu"}) {
    v1::SourceFile& file = *bundle.add_files();
    file.set_path(path);
    file.set_content(std::string("// ") + path + "\n");
  }
  return bundle;
}

v1::Problem simulated_problem(std::int64_t n) {
  v1::Problem problem;
  to_wire(parse_problem("N=" + std::to_string(n) + ",T=f32"), problem);
  return problem;
}

Configuration configuration(std::int64_t a, std::int64_t b) { return {{{"A", a}, {"B", b}}}; }

std::string text(const v1::Configuration& configuration) {
  return to_string(configuration_from_wire(configuration, "configuration"));
}

std::uint32_t count_of(const v1::JobResult& result, v1::Outcome outcome) {
  for (const v1::OutcomeCount& one : result.outcomes()) {
    if (one.outcome() == outcome) {
      return one.count();
    }
  }
  return 0;
}

double bowl(const Configuration& configuration) {
  const auto steps = std::abs(*configuration.value("A") - 3) + std::abs(*configuration.value("B") - 2);
  return 100 * std::pow(1.2, static_cast<double>(steps));
}

void MemoryCompiler::want(const Digest& key, CompilePriority priority,
                          const std::function<CompileInput()>& input) {
  const std::lock_guard lock(mutex_);
  auto [found, is_new] = entries_.try_emplace(key);
  Entry& entry = found->second;
  ++entry.wants;
  if (is_new) {
    entry.request = input().request;
    entry.priority = priority;
    submitted.push_back(priority);
  }
}

void MemoryCompiler::give_up(const Digest& key) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (--found->second.wants == 0 && !found->second.result) {
    entries_.erase(found);
  }
}

void MemoryCompiler::raise(const Digest& key, CompilePriority priority) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_.at(key);
  if (!entry.result && priority > entry.priority) {
    entry.priority = priority;
    raised.push_back(priority);
  }
}

Compiler::ResultPtr MemoryCompiler::wait(const Digest& key, std::chrono::milliseconds timeout) {
  if (is_stuck) {
    std::this_thread::sleep_for(timeout);
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_.at(key);
  if (!entry.result) {
    const auto& entries = entry.request.entries();
    entry.result = std::make_shared<Result>(
        Result{reply_to(entries[0]), {entries.begin(), entries.end()}, entry.request.architecture()});
    entry.nvrtc_calls = entry.result->reply.nvrtc_calls();
  }
  return entry.result;
}

std::uint32_t MemoryCompiler::take_nvrtc_calls(const Digest& key) {
  const std::lock_guard lock(mutex_);
  return std::exchange(entries_.at(key).nvrtc_calls, 0);
}

Compiler::ResultPtr MemoryCompiler::find(const Digest& key) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : found->second.result;
}

void MemoryCompiler::forget_all() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
}

std::size_t MemoryCompiler::under_way() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::ranges::count_if(entries_, [](const auto& entry) { return !entry.second.result; }));
}

v1::CompileReply MemoryCompiler::reply_to(const std::string& entry) {
  ++compiled[entry];
  v1::CompileReply reply;
  reply.set_nvrtc_calls(1);
  if (refuses && refuses(entry)) {
    reply.set_outcome(v1::COMPILE);
    reply.set_log("refused");
    return reply;
  }
  reply.set_outcome(v1::CORRECT);
  const std::string symbol = mangled ? mangled(entry) : "_Z" + entry;
  const std::string bytes = cubin ? cubin(entry, symbol) : "";
  reply.set_cubin(bytes.empty() ? entry + (more ? more(entry) : "") : bytes);
  reply.add_entry_symbols(symbol);
  v1::EntryResources& resources = *reply.add_resources();
  resources.set_entry_symbol(symbol);
  resources.set_registers(32);
  resources.set_launch_shared_bytes(launch_shared ? launch_shared(entry) : 0);
  return reply;
}

void MemoryChannel::store(v1::Batch batch) {
  if (batch.ByteSizeLong() > std::size_t{4} << 20) {
    throw std::logic_error("a message above gRPC's limit");
  }
  const bool dies = batches++ == die_at;
  if (dies) {
    lost = batch;
  }
  if (dies && !die_after_storing) {
    throw Error(ErrorCode::Aborted, "lease", "lost");
  }
  std::set<std::string> sent;
  for (const v1::ArtifactUpload& artifact : batch.artifacts()) {
    if (!sent.insert(artifact.key()).second) {
      throw std::logic_error("an artifact twice in a batch");
    }
    artifacts[artifact.key()] = artifact;
    if (!artifact.info().zstd_cubin().empty()) {
      cubins[artifact.info().digest()] = zstd_decompress(artifact.info().zstd_cubin(), 4 << 20);
    }
    artifacts[artifact.key()].mutable_info()->clear_zstd_cubin();
  }
  for (const v1::TrialHeader& trial : batch.trials()) {
    if (trial.outcome() == v1::OUT_OF_MEMORY) {
      throw std::logic_error("out of memory was stored");
    }
    trials[trial.trial_key()] = trial;
  }
  for (const v1::SampleBlock& block : batch.blocks()) {
    if (!trials.contains(block.trial_key())) {
      throw std::logic_error("a block of an unknown trial");
    }
    if (!blocks.emplace(std::tuple{block.trial_key(), static_cast<int>(block.stage()), block.index()}, block)
             .second) {
      throw std::logic_error("a block was stored twice");
    }
  }
  for (const v1::VerificationResult& one : batch.verifications()) {
    verifications[one.trial_key() + one.problem().SerializeAsString() + (one.after_timing() ? "after" : "")] =
        one;
  }
  if (dies) {
    throw Error(ErrorCode::Aborted, "lease", "lost");
  }
}

void MemoryChannel::progress(const v1::Progress& progress) {
  told.push_back(progress);
  stages.insert(progress.stage());
  if (on_told) {
    on_told(progress);
  }
}

std::optional<std::string> MemoryChannel::fetch_cubin(const Digest& digest) {
  ++fetched;
  const auto found = cubins.find(std::string(digest.view()));
  if (found == cubins.end()) {
    return std::nullopt;
  }
  return found->second;
}

void MemoryChannel::put_artifact(const v1::ArtifactInfo& info, const std::string& zstd_cubin) {
  ++put;
  cubins[info.digest()] = zstd_decompress(zstd_cubin, std::size_t{64} << 20);
}

v1::LeaseGrant MemoryChannel::grant() const {
  v1::LeaseGrant lease = frame;
  for (const auto& [key, trial] : trials) {
    *lease.add_trials() = trial;
  }
  for (const auto& [key, block] : blocks) {
    *lease.add_blocks() = block;
  }
  for (const auto& [key, one] : verifications) {
    *lease.add_verifications() = one;
  }
  for (const auto& [key, artifact] : artifacts) {
    *lease.add_artifacts() = artifact;
  }
  return lease;
}

const v1::TrialHeader* MemoryChannel::trial(const Configuration& wanted) const {
  for (const auto& [key, trial] : trials) {
    if (configuration_from_wire(trial.configuration(), "configuration") == wanted) {
      return &trial;
    }
  }
  return nullptr;
}

World::World(Behaviour behaviour) : device(std::move(behaviour)), builds(nvrtc_language(toolchain())) {
  channel.frame = make_frame();
  options.idle_poll = std::chrono::milliseconds(1);
  device.on_measure = [this] { clock.advance(measuring_takes); };
  if (!device.behaviour().time_us) {
    device.behaviour().time_us = bowl;
  }
}

v1::JobResult World::run() {
  compiler.forget_all();
  return run_with_kept_compiles();
}

v1::JobResult World::run_with_kept_compiles() {
  TuneJob job({compiler, builds, device, channel, stop, clock}, options);
  return job.run(channel.grant());
}

std::optional<v1::JobResult> World::try_run() {
  try {
    return run();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::Aborted) {
      throw;
    }
    return std::nullopt;
  }
}

}  // namespace cubind::test
