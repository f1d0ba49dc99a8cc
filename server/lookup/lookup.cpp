#include "server/lookup/lookup.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "server/lookup/todays_trial.hpp"
#include "tuner/spec/space.hpp"
#include "tuner/spec/todays_terms.hpp"

namespace cubind {
namespace {

/// A record with what it is ranked by; checked against the asked problem only when its turn comes.
struct Ranked {
  RecordPtr record;
  CarriedOver carried;
  Match match;
  int evidence = 0;
  double distance = 0;  // of the problem, then of the device
  double size = 0;      // of the measured problem
};

/// Measured, provisional, imported, predicted. A replay device's own class holds nothing but what was
/// replayed or imported.
int evidence_rank(const RecordRow& record) {
  switch (record.evidence) {
    case Evidence::Measured:
    case Evidence::Replayed:
      return record.provisional ? 3 : 4;
    case Evidence::Imported:
      return 2;
    case Evidence::Predicted:
      return 1;
    case Evidence::Reported:
    case Evidence::None:
      return 0;
  }
  return 0;
}

double log_size(const Problem& problem) {
  double size = 0;
  for (const NamedValue& dim : problem.dims) {
    size += std::log2(static_cast<double>(std::max<std::int64_t>(dim.value, 1)));
  }
  return size;
}

double device_distance(const DeviceFacts& a, const DeviceFacts& b) {
  const double ratio =
      static_cast<double>(std::max(a.sm_count, 1u)) / static_cast<double>(std::max(b.sm_count, 1u));
  const bool same_capability = a.cc_major == b.cc_major && a.cc_minor == b.cc_minor;
  return (same_capability ? 0 : 100) + std::abs(std::log2(ratio));
}

bool in_bucket(const std::vector<BucketRule::Interval>& bucket, const Problem& problem) {
  for (std::size_t i = 0; i < bucket.size(); ++i) {
    const std::int64_t value = problem.dims[i].value;
    if (value < bucket[i].lower || value > bucket[i].upper) {
      return false;
    }
  }
  return true;
}

class Ranking {
 public:
  Ranking(const Question& question, const IndexSnapshot& index, const CarryOver& carry)
      : question_(question),
        index_(index),
        carry_(carry),
        bucket_(question.spec->bucket(question.key.problem)) {}

  std::vector<Ranked> rank() {
    const RecordGroup* group = index_.group(question_.key);
    if (!group) {
      return {};
    }
    for (const auto& [device_class, records] : *group) {
      consider_class(device_class, *records);
    }
    std::ranges::sort(ranked_, leads);
    return std::move(ranked_);
  }

  /// As a problem of the bucket sees it that has no record of its own.
  RecordPtr bucket_leader() {
    asks_for_bucket_ = true;
    if (const ClassRecords* records = index_.records(question_.key)) {
      consider_class(question_.key.device_class, *records);
    }
    std::erase_if(ranked_, [](const Ranked& item) { return !item.match.has(Departure::Bucket); });
    if (ranked_.empty()) {
      return nullptr;
    }
    const Ranked& first = *std::ranges::min_element(ranked_, leads);
    const bool tied = std::ranges::any_of(ranked_, [&](const Ranked& item) {
      return item.match == first.match && item.evidence == first.evidence && item.size == first.size &&
             item.record->question.problem != first.record->question.problem;
    });
    return tied ? nullptr : first.record;
  }

 private:
  /// Compares by everything that may matter, at last by the row's id: the order is total and the same
  /// everywhere.
  static bool leads(const Ranked& a, const Ranked& b) {
    if (a.match != b.match) {
      return a.match < b.match;
    }
    const auto size = [](const Ranked& item) { return item.match.has(Departure::Bucket) ? item.size : 0; };
    return std::tuple(-a.evidence, -size(a), a.distance, -a.record->id) <
           std::tuple(-b.evidence, -size(b), b.distance, -b.record->id);
  }

  void consider_class(const Digest& device_class, const ClassRecords& records) {
    const bool same_device = device_class == question_.key.device_class;
    const DeviceClass* device = same_device ? &question_.device : index_.device(device_class);
    // A table that is played back is a device of its own.
    if (!device || device->facts.replay_table != question_.device.facts.replay_table) {
      return;
    }
    for (const RecordPtr& record : records.records) {
      consider(record, *device, same_device);
    }
  }

  void consider(const RecordPtr& record, const DeviceClass& device, bool same_device) {
    const int evidence = evidence_rank(*record);
    const auto distance = KernelSpec::distance(record->question.problem, question_.key.problem);
    if (evidence == 0 || !distance) {
      return;
    }
    Match match;
    if (asks_for_bucket_ || record->question.problem != question_.key.problem) {
      if (in_bucket(bucket_, record->question.problem)) {
        match.add(Departure::Bucket);
      } else if (*distance <= kNearestLimit) {
        match.add(Departure::NearestProblem);
      } else {
        return;
      }
    }
    if (!same_device) {
      match.add(Departure::OtherDevice);
    }
    const auto carried = carry_(*record, device.facts);
    if (!carried) {
      return;
    }
    if (carried->other_revision) {
      match.add(Departure::OtherRevision);
    }
    if (is_stale(question_, *record, same_device)) {
      match.add(Departure::Stale);
    }
    ranked_.push_back({record, *carried, match, evidence,
                       *distance + (same_device ? 0 : device_distance(device.facts, question_.device.facts)),
                       log_size(record->question.problem)});
  }

  const Question& question_;
  const IndexSnapshot& index_;
  const CarryOver& carry_;
  const std::vector<BucketRule::Interval> bucket_;
  bool asks_for_bucket_ = false;
  std::vector<Ranked> ranked_;
};

}  // namespace

bool is_stale(const Question& question, const RecordRow& record, bool same_device) {
  if (question.driver && !question.driver->version.empty() && !record.driver.version.empty() &&
      driver_branch(question.driver->version) != driver_branch(record.driver.version)) {
    return true;
  }
  if (question.toolchain && !record.toolchain.name.empty() && record.toolchain.name != *question.toolchain) {
    return true;
  }
  return same_device && question.power_limit_mw != 0 && record.power_limit_mw != 0 &&
         question.power_limit_mw != record.power_limit_mw;
}

std::optional<CarriedOver> carry_over(const KernelSpec& spec, const RecordRow& record,
                                      const DeviceFacts& measured_on) {
  const auto configuration = in_todays_terms(spec, record.configuration);
  if (!configuration) {
    return std::nullopt;
  }
  CarriedOver carried{*configuration, true};
  try {
    const Problem problem = spec.canonicalize(record.question.problem, "record");
    if (problem == record.question.problem) {
      carried.other_revision = todays_trial_key(spec, record, *configuration, measured_on) != record.trial;
    }
  } catch (const Error&) {
    // Today's spec cannot evaluate the problem that was measured: certainly another revision. Whether the
    // configuration holds for the asked problem is checked by itself.
  }
  return carried;
}

std::vector<AnswerCandidate> rank_candidates(const Question& question, const IndexSnapshot& index,
                                             const CarryOver& carry, std::size_t limit) {
  const DeviceConstants constants = device_constants(question.device.facts);
  const auto fits = [&](const Configuration& configuration) {
    return !violation(*question.spec, question.key.problem, configuration, constants);
  };
  std::vector<AnswerCandidate> candidates;
  for (Ranked& ranked : Ranking(question, index, carry).rank()) {
    if (candidates.size() == limit) {
      break;
    }
    if (fits(ranked.carried.configuration)) {
      candidates.push_back(
          {ranked.match, ranked.record->evidence, ranked.record, ranked.carried.configuration});
    }
  }
  if (auto configuration = default_configuration(*question.spec, question.key.problem, constants)) {
    candidates.push_back({Match{Departure::Default}, Evidence::None, nullptr, std::move(*configuration)});
  }
  return candidates;
}

RecordPtr bucket_leader(const Question& question, const IndexSnapshot& index, const CarryOver& carry) {
  return Ranking(question, index, carry).bucket_leader();
}

std::vector<Configuration> neighbouring_winners(const Question& question, const IndexSnapshot& index,
                                                std::size_t limit) {
  const ClassRecords* records = index.records(question.key);
  std::vector<std::tuple<double, std::int64_t, const RecordRow*>> neighbours;
  for (const RecordPtr& record : records ? records->records : std::vector<RecordPtr>{}) {
    const auto distance = KernelSpec::distance(record->question.problem, question.key.problem);
    if (distance && *distance > 0) {
      neighbours.emplace_back(*distance, record->id, record.get());
    }
  }
  std::ranges::sort(neighbours);
  std::vector<Configuration> winners;
  for (const auto& [distance, id, record] : neighbours) {
    auto configuration = in_todays_terms(*question.spec, record->configuration);
    if (winners.size() < limit && configuration &&
        std::ranges::find(winners, *configuration) == winners.end()) {
      winners.push_back(std::move(*configuration));
    }
  }
  return winners;
}

bool is_fresh(const Question& question, const AnswerCandidate& candidate) {
  if (!candidate.record || !candidate.match.exact() || candidate.record->provisional) {
    return false;
  }
  const RecordRow& record = *candidate.record;
  const bool measured = record.evidence == Evidence::Measured || record.evidence == Evidence::Replayed;
  return measured && record.verification.verified && record.verification.digest == question.verification;
}

}  // namespace cubind
