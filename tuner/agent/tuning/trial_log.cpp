#include "tuner/agent/tuning/trial_log.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "plan/answer_wire.hpp"
#include "plan/wire.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {

TrialLog::TrialLog(const v1::LeaseGrant& lease, const JobInput& input, Comparable comparable,
                   CompileSource& artifacts, JobChannel& channel, const Clock& clock)
    : input_(input),
      comparable_(std::move(comparable)),
      artifacts_(artifacts),
      channel_(channel),
      clock_(clock) {
  for (const v1::TrialHeader& header : lease.trials()) {
    headers_[header.trial_key()] = header;
  }
  for (const v1::SampleBlock& block : lease.blocks()) {
    blocks_[{block.trial_key(), block.stage(), block.index()}] = block;
    if (counts(block) && stored_tick_us_ <= 0) {
      stored_tick_us_ = block.tick_us();
    }
  }
  // Reference or tolerance have been edited since where the digests differ: those verifications are repeated.
  for (const v1::VerificationResult& result : lease.verifications()) {
    if (result.verification_digest() != input_.verification.view()) {
      outdated_.insert(result.trial_key());
      continue;
    }
    const std::string problem = to_string(problem_from_wire(result.problem(), "lease.verifications.problem"));
    verifications_[{result.trial_key(), problem, result.after_timing()}] = result;
  }
}

bool TrialLog::counts(const v1::SampleBlock& block) const {
  return block.timer() == comparable_.timer &&
         !(comparable_.alone_on_the_gpu && block.conditions().contended());
}

const v1::TrialHeader* TrialLog::header(const Candidate& candidate) const {
  const auto found = headers_.find(bytes_of(candidate.trial_key.digest));
  return found == headers_.end() ? nullptr : &found->second;
}

const v1::VerificationResult* TrialLog::verification(const Candidate& candidate, const Problem& problem,
                                                     bool after_timing) const {
  const auto found =
      verifications_.find({bytes_of(candidate.trial_key.digest), to_string(problem), after_timing});
  return found == verifications_.end() ? nullptr : &found->second;
}

std::vector<const v1::SampleBlock*> TrialLog::blocks(const Candidate& candidate,
                                                     v1::SampleBlock::Stage stage) const {
  const std::string key = bytes_of(candidate.trial_key.digest);
  std::vector<const v1::SampleBlock*> result;
  for (auto at = blocks_.lower_bound({key, stage, 0}); at != blocks_.end(); ++at) {
    if (std::get<0>(at->first) != key || std::get<1>(at->first) != stage) {
      break;
    }
    if (counts(at->second)) {
      result.push_back(&at->second);
    }
  }
  return result;
}

const v1::SampleBlock* TrialLog::block(const Candidate& candidate, v1::SampleBlock::Stage stage,
                                       std::uint32_t index) const {
  const auto found = blocks_.find({bytes_of(candidate.trial_key.digest), stage, index});
  if (found == blocks_.end() || !counts(found->second)) {
    return nullptr;
  }
  return &found->second;
}

std::uint32_t TrialLog::next_index(const Candidate& candidate, v1::SampleBlock::Stage stage) const {
  const std::string key = bytes_of(candidate.trial_key.digest);
  std::uint32_t next = 0;
  for (auto at = blocks_.lower_bound({key, stage, 0}); at != blocks_.end(); ++at) {
    if (std::get<0>(at->first) != key || std::get<1>(at->first) != stage) {
      break;
    }
    next = std::get<2>(at->first) + 1;
  }
  return next;
}

std::uint32_t TrialLog::samples(const Candidate& candidate, v1::SampleBlock::Stage stage) const {
  int count = 0;
  for (const v1::SampleBlock* one : blocks(candidate, stage)) {
    count += one->samples_us_size();
  }
  return static_cast<std::uint32_t>(count);
}

void TrialLog::set_outcome(const Candidate& candidate, v1::Outcome outcome, const std::string& detail,
                           std::uint32_t fault_count) {
  if (outcome == v1::OUT_OF_MEMORY) {
    throw Error(ErrorCode::Internal, "trial", "out of memory is not a property of a configuration");
  }
  const std::string key = bytes_of(candidate.trial_key.digest);
  v1::TrialHeader header = headers_[key];  // what was measured of it stays
  header.clear_measured_as();
  header.set_trial_key(key);
  header.set_trial_key_full(candidate.trial_key.full);
  header.set_artifact_key(bytes_of(candidate.artifact_key.digest));
  to_wire(candidate.configuration, *header.mutable_configuration());
  to_wire(input_.problem, *header.mutable_problem());
  header.set_outcome(outcome);
  header.set_detail(detail);
  header.set_fault_count(fault_count);
  const Compiled& artifact = artifacts_.known(candidate.artifact_key.digest);
  to_wire(artifact.toolchain, *header.mutable_toolchain());
  headers_[key] = std::move(header);
  pending_headers_[key] = candidate.artifact_key.digest;
}

bool TrialLog::was_verified_otherwise(const Candidate& candidate) const {
  const std::string key = bytes_of(candidate.trial_key.digest);
  return outdated_.contains(key) && std::ranges::none_of(verifications_of(key), [](const auto& known) {
           return known.second.outcome() != v1::CORRECT;
         });
}

std::ranges::subrange<TrialLog::Verifications::const_iterator> TrialLog::verifications_of(
    const std::string& key) const {
  const auto begin = verifications_.lower_bound({key, "", false});
  return {begin, std::find_if(begin, verifications_.end(),
                              [&](const auto& known) { return std::get<0>(known.first) != key; })};
}

bool TrialLog::adopt(const Candidate& candidate) {
  if (header(candidate)) {
    return false;
  }
  const std::string key = bytes_of(candidate.trial_key.digest);
  const auto block = blocks_.lower_bound({key, 0, 0});
  const bool has_blocks = block != blocks_.end() && std::get<0>(block->first) == key;
  if (!has_blocks && verifications_of(key).empty()) {
    return false;
  }
  set_outcome(candidate, v1::UNVERIFIED, "", 0);
  return true;
}

void TrialLog::share(const Candidate& candidate, const Candidate& measured) {
  const v1::TrialHeader* known = header(candidate);
  const v1::TrialHeader* other = header(measured);
  const std::string key = bytes_of(measured.trial_key.digest);
  if (!other || !other->measured_as().empty()) {
    return;  // no worker of this job has tried it
  }
  if (known && (known->measured_as() != key || known->outcome() == other->outcome())) {
    return;
  }
  set_outcome(candidate, other->outcome(), other->detail(), 0);
  headers_[bytes_of(candidate.trial_key.digest)].set_measured_as(key);
}

void TrialLog::require_header(const Candidate& candidate) {
  const v1::TrialHeader* known = header(candidate);
  if (!known || !known->measured_as().empty()) {
    set_outcome(candidate, v1::UNVERIFIED, "", 0);
  }
}

void TrialLog::add(const Candidate& candidate, const Problem& problem, v1::VerificationResult result) {
  require_header(candidate);
  result.set_trial_key(bytes_of(candidate.trial_key.digest));
  result.set_verification_digest(bytes_of(input_.verification));
  to_wire(problem, *result.mutable_problem());
  verifications_[{result.trial_key(), to_string(problem), result.after_timing()}] = result;
  *pending_.add_verifications() = std::move(result);
}

void TrialLog::add(const Candidate& candidate, v1::SampleBlock block) {
  require_header(candidate);
  block.set_trial_key(bytes_of(candidate.trial_key.digest));
  block.set_timer(comparable_.timer);
  blocks_[{block.trial_key(), block.stage(), block.index()}] = block;
  *pending_.add_blocks() = std::move(block);
}

void TrialLog::commit_if_due() {
  if (clock_.steady_now() - sent_at_ >= kBetweenBatches) {
    commit();
  }
}

void TrialLog::commit() {
  std::set<Digest> artifacts;  // some trials share one
  for (const auto& [trial, artifact] : pending_headers_) {
    *pending_.add_trials() = headers_.at(trial);
    artifacts.insert(artifact);
  }
  for (const Digest& artifact : artifacts) {
    artifacts_.add_to(pending_, artifact);
  }
  if (pending_.trials().empty() && pending_.blocks().empty() && pending_.verifications().empty()) {
    return;
  }
  sent_at_ = clock_.steady_now();
  channel_.store(std::exchange(pending_, {}));
  for (const Digest& artifact : artifacts) {
    artifacts_.mark_stored(artifact);
  }
  pending_headers_.clear();
}

void TrialLog::settle() { channel_.settle(); }

}  // namespace cubind
