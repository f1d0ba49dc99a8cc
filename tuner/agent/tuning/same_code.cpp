#include "tuner/agent/tuning/same_code.hpp"

#include <utility>

#include "plan/answer_wire.hpp"

namespace cubind {

const Candidate& SameCode::measured_for(const Candidate& candidate) {
  const auto [at, is_new] = measured_for_.try_emplace(&candidate, &candidate);
  if (is_new) {
    at->second = find(candidate);
  }
  return *at->second;
}

const Candidate* SameCode::find(const Candidate& candidate) {
  const Compiled& artifact = artifacts_.known(candidate.artifact_key.digest);
  Measured one{&candidate, without_names(candidate.plan, artifact.resources)};
  if (!artifact.cubin.empty()) {
    code_of(one);  // later its bytes would have to be fetched
  }
  for (Measured& earlier : measured_) {
    if (earlier.launch == one.launch && are_same(earlier, one)) {
      return earlier.candidate;
    }
  }
  measured_.push_back(std::move(one));
  return &candidate;
}

bool SameCode::are_same(Measured& earlier, Measured& later) {
  const v1::TrialHeader* known = log_.header(*later.candidate);
  if (known && known->measured_as() == bytes_of(earlier.candidate->trial_key.digest)) {
    return true;
  }
  return code_of(earlier) && code_of(earlier) == code_of(later);
}

const std::optional<Digest>& SameCode::code_of(Measured& one) {
  if (!std::exchange(one.is_read, true)) {
    const Digest& key = one.candidate->artifact_key.digest;
    const bool is_fetched = artifacts_.known(key).cubin.empty();
    one.code = loaded_code(artifacts_.kept_cubin(key), artifacts_.known(key).symbols);
    if (is_fetched) {
      artifacts_.forget_bytes(key);
    }
  }
  return one.code;
}

std::map<const Candidate*, const Candidate*> SameCode::shared() const {
  auto others = measured_for_;
  std::erase_if(others, [](const auto& entry) { return entry.first == entry.second; });
  return others;
}

}  // namespace cubind
