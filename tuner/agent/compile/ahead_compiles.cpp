#include "tuner/agent/compile/ahead_compiles.hpp"

#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "tuner/agent/tuning/candidates.hpp"
#include "tuner/agent/tuning/proposals.hpp"

namespace cubind {
namespace {

// An exhaustive search has fewer. A model's proposals beyond the first ones depend on samples.
constexpr std::size_t kMostAhead = 1000;
constexpr std::chrono::milliseconds kAheadPoll{50};

std::set<std::string> compiled_before(const v1::LeaseGrant& job) {
  std::set<std::string> keys;
  for (const v1::ArtifactUpload& artifact : job.artifacts()) {
    keys.insert(artifact.key());
  }
  for (const v1::TrialHeader& trial : job.trials()) {
    keys.insert(trial.artifact_key());
  }
  return keys;
}

}  // namespace

AheadCompiles::AheadCompiles(Compiler& compiles, KernelBuilds& builds, v1::LeaseGrant job,
                             v1::DeviceInfo device, Urgency urgency)
    : compiles_(compiles),
      builds_(builds),
      job_(std::move(job)),
      device_(std::move(device)),
      urgency_{job_.background() ? CompilePriority::Background : urgency.priority, urgency.window},
      thread_([this] { work(); }) {}

AheadCompiles::~AheadCompiles() {
  stop_.request(JobStop::Kind::Drop);
  thread_.join();
}

// What is wrong with the job is said when it is granted.
void AheadCompiles::work() {
  try {
    compile_all();
  } catch (const std::exception& error) {
    log_debug(job_.job_id() + " is not compiled ahead: " + error.what());
  }
  for (const Digest& key : under_way_) {
    compiles_.give_up(key);
  }
  done_ = true;
  done_.notify_all();
}

void AheadCompiles::compile_all() {
  const auto build = builds_.of(job_.spec());
  const JobInput input = make_job_input(job_, build->spec(), device_, [this] { stop_.check(); });
  Candidates candidates(input, *build);
  std::vector<const Candidate*> wanted;
  const RealClock clock;
  const auto note = [&](const Candidate& one) {
    stop_.check();
    wanted.push_back(&one);
  };
  Proposals proposals(input, candidates, clock, {kMostAhead, note, [](const Candidate&) { return true; }});
  proposals.next();
  if (!input.replayed && input.spec->reference.kind == ReferenceSpec::Kind::Kernel) {
    const ArtifactSource source = reference_artifact_source(*input.spec, input.problem, input.architecture);
    compile(artifact_key(source, build->reference_identity()).digest,
            [&] { return build->reference_request(source); });
  }
  const std::set<std::string> before = compiled_before(job_);
  for (const Candidate* one : wanted) {
    if (!before.contains(std::string(one->artifact_key.digest.view()))) {
      compile(one->artifact_key.digest, [&] { return build->request(one->source); });
    }
  }
  while (!under_way_.empty()) {
    wait_for_first();
  }
}

void AheadCompiles::compile(const Digest& key, const std::function<CompileInput()>& input) {
  stop_.check();
  if (under_way_.size() >= urgency_.window) {
    wait_for_first();
  }
  compiles_.want(key, urgency_.priority, input);
  under_way_.push_back(key);
}

void AheadCompiles::wait_for_first() {
  while (!compiles_.wait(under_way_.front(), kAheadPoll)) {
    stop_.check();
  }
  compiles_.give_up(under_way_.front());
  under_way_.pop_front();
}

}  // namespace cubind
