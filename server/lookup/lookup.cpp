#include "server/lookup/lookup.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "server/lookup/todays_trial.hpp"
#include "tuner/spec/invalid_where.hpp"
#include "tuner/spec/space.hpp"
#include "tuner/spec/todays_terms.hpp"

namespace cubind {

bool is_version_of(const CurrentToolchain& current, const ToolchainIdentity& toolchain) {
  return toolchain.name == current.name;
}

bool is_current(const CurrentToolchain& current, const ToolchainIdentity& toolchain) {
  const bool is_known = !current.builds.empty() && !toolchain.nvrtc.is_zero();
  return is_version_of(current, toolchain) &&
         (!is_known ||
          std::ranges::find(current.builds, CurrentToolchain::Build{toolchain.nvrtc, toolchain.builtins}) !=
              current.builds.end());
}

std::string target_architecture(const Question& question) {
  return architecture(question.device.facts, question.spec->arch_features);
}

bool in_bucket(const std::vector<BucketRule::Interval>& bucket, Dims dims) {
  for (std::size_t i = 0; i < bucket.size(); ++i) {
    if (dims[i] < bucket[i].lower || dims[i] > bucket[i].upper) {
      return false;
    }
  }
  return true;
}

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

/// Measured, provisional, imported, shipped. A replay device's own class holds only replayed and imported
/// records.
int evidence_rank(const RecordRow& record) {
  switch (record.evidence) {
    case Evidence::Measured:
    case Evidence::Replayed:
      return record.provisional ? 3 : 4;
    case Evidence::Imported:
      return 2;
    case Evidence::Shipped:
      return 1;
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
      static_cast<double>(std::max(a.sm_count(), 1u)) / static_cast<double>(std::max(b.sm_count(), 1u));
  const bool same_capability = a.cc_major() == b.cc_major() && a.cc_minor() == b.cc_minor();
  return (same_capability ? 0 : 100) + std::abs(std::log2(ratio));
}

/// KernelSpec::distance() is within the limit, as far as the dims go.
bool is_near(const Problem& problem, Dims dims) {
  double sum = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t asked = problem.dims[i].value;
    if (asked == dims[i]) {
      continue;
    }
    if (asked <= 0 || dims[i] <= 0) {
      return false;
    }
    sum += std::abs(std::log2(static_cast<double>(dims[i]) / static_cast<double>(asked)));
  }
  return sum <= kNearestLimit;
}

bool has_other_toolchain(const Question& question, const RecordRow& record) {
  if (question.is_locked || !question.toolchain || record.toolchain.name.empty()) {
    return false;
  }
  return !(was_measured_here(record) ? is_current(*question.toolchain, record.toolchain)
                                     : is_version_of(*question.toolchain, record.toolchain));
}

enum class Validator { None, Driver, Toolchain, FlushMethod, PowerLimit };

/// The first validator that is not the question's.
Validator changed_validator(const Question& question, const RecordRow& record, bool same_device) {
  if (question.is_locked) {
    return Validator::None;
  }
  if (question.driver && !question.driver->version.empty() && !record.driver.version.empty() &&
      driver_branch(question.driver->version) != driver_branch(record.driver.version)) {
    return Validator::Driver;
  }
  if (has_other_toolchain(question, record)) {
    return Validator::Toolchain;
  }
  if (question.key.policy.flush_method != record.question.policy.flush_method) {
    return Validator::FlushMethod;
  }
  return same_device && has_same_limit(record.timing, question.gpu) == false ? Validator::PowerLimit
                                                                             : Validator::None;
}

/// Whether the bits of the record's variant are what the question's numerics want of it.
bool keeps_bits(const Question& question, const RecordRow& record, const Match& match) {
  if (question.key.numerics.kind != Numerics::Kind::Invariant) {
    return true;
  }
  return !match.has(Departure::NearestProblem) && !match.has(Departure::OtherDevice) &&
         !match.has(Departure::OtherRevision) && !has_other_toolchain(question, record) &&
         record.verification.digest() == question.verification.view();
}

class Ranking {
 public:
  Ranking(const Question& question, const IndexSnapshot& index, const CarryOver& carry)
      : question_(question),
        index_(index),
        carry_(carry),
        bucket_(question.spec->bucket(question.key.problem)) {}

  /// Those of the problem and its bucket, measured on the question's own class, best first: whatever else
  /// speaks against them, they precede what others() gives.
  std::vector<Ranked> own() {
    consider_own();
    return take();
  }

  /// Those of neighbouring problems and other classes, best first.
  std::vector<Ranked> others() {
    const RecordGroup* group = index_.group(question_.key);
    if (!group) {
      return {};
    }
    for (const auto& [device_class, records] : *group) {
      const bool same_device = device_class == question_.key.device_class;
      consider_class(device_class, *records, [&](Dims dims) {
        return in_bucket(bucket_, dims) ? !same_device : is_near(question_.key.problem, dims);
      });
    }
    return take();
  }

  /// As own(), for a problem of the bucket without a record of its own.
  std::vector<Ranked> of_bucket() {
    asks_for_bucket_ = true;
    consider_own();
    std::erase_if(ranked_, [](const Ranked& item) { return !item.match.has(Departure::Bucket); });
    return take();
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

  std::vector<Ranked> take() {
    std::ranges::sort(ranked_, leads);
    return std::exchange(ranked_, {});
  }

  void consider_own() {
    if (const ClassRecords* records = index_.records(question_.key)) {
      consider_class(question_.key.device_class, *records,
                     [&](Dims dims) { return in_bucket(bucket_, dims); });
    }
  }

  void consider_class(const Digest& device_class, const ClassRecords& records,
                      const std::function<bool(Dims)>& wanted) {
    const bool same_device = device_class == question_.key.device_class;
    const DeviceClass* device = same_device ? &question_.device : index_.device(device_class);
    // A table that is played back is a device of its own.
    if (!device || device->facts.replay_table() != question_.device.facts.replay_table()) {
      return;
    }
    for (const RecordPtr& record : records.select(question_.key.problem.dims.size(), wanted)) {
      consider(record, *device, same_device);
    }
  }

  bool is_of_bucket(const Problem& problem) const {
    std::vector<std::int64_t> dims;
    for (const NamedValue& dim : problem.dims) {
      dims.push_back(dim.value);
    }
    return in_bucket(bucket_, dims);
  }

  void consider(const RecordPtr& record, const DeviceClass& device, bool same_device) {
    const int evidence = evidence_rank(*record);
    const auto distance = KernelSpec::distance(record->question.problem, question_.key.problem);
    if (evidence == 0 || !distance) {
      return;
    }
    Match match;
    if (asks_for_bucket_ || record->question.problem != question_.key.problem) {
      if (is_of_bucket(record->question.problem)) {
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
      if (question_.is_locked) {
        return;
      }
      match.add(Departure::OtherRevision);
    }
    if (is_stale(question_, *record, same_device)) {
      match.add(Departure::Stale);
    }
    if (!keeps_bits(question_, *record, match)) {
      return;
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

std::optional<bool> has_same_limit(const Timing& measured, const DeviceFacts& gpu) {
  const bool known = measured.power_limit_mw() != 0 && gpu.power_limit_mw() != 0;
  return known ? std::optional(measured.power_limit_mw() == gpu.power_limit_mw()) : std::nullopt;
}

bool is_stale(const Question& question, const RecordRow& record, bool same_device) {
  return changed_validator(question, record, same_device) != Validator::None;
}

std::string stale_because(const Question& question, const RecordRow& record, bool same_device) {
  switch (changed_validator(question, record, same_device)) {
    case Validator::Driver:
      return "driver " + record.driver.version + ", now " + question.driver->version;
    case Validator::Toolchain:
      return record.toolchain.name == question.toolchain->name
                 ? "another build of " + record.toolchain.name
                 : record.toolchain.name + ", now " + question.toolchain->name;
    case Validator::FlushMethod:
      return "method " + std::to_string(record.question.policy.flush_method) + " of clearing the L2, now " +
             std::to_string(question.key.policy.flush_method);
    case Validator::PowerLimit:
      return "power limit " + std::to_string(record.timing.power_limit_mw() / 1000) + " W, now " +
             std::to_string(question.gpu.power_limit_mw() / 1000) + " W";
    case Validator::None:
      break;
  }
  return "";
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

namespace {

/// Calls `visit` until it returns false.
void visit_defaults(const Question& question, const std::function<bool(const Configuration&)>& visit) {
  const DeviceConstants constants = device_constants(question.device.facts);
  bool is_any_valid = false;
  for (const Configuration& configuration : question.spec->defaults) {
    if (violation(*question.spec, question.key.problem, configuration, constants)) {
      continue;
    }
    is_any_valid = true;
    if (!visit(configuration)) {
      return;
    }
  }
  if (!is_any_valid && question.fallback) {
    visit(*question.fallback);
  }
}

}  // namespace

std::optional<Configuration> valid_default(const Question& question) {
  std::optional<Configuration> first;
  visit_defaults(question, [&](const Configuration& configuration) {
    first = configuration;
    return false;
  });
  return first;
}

void visit_candidates(const Question& question, const IndexSnapshot& index, const CarryOver& carry,
                      const std::function<bool(AnswerCandidate&&)>& visit, std::size_t limit) {
  const DeviceConstants constants = device_constants(question.device.facts);
  Ranking ranking(question, index, carry);
  std::size_t visited = 0;
  for (const auto rank : {&Ranking::own, &Ranking::others}) {
    if (visited == limit) {
      break;
    }
    for (Ranked& ranked : (ranking.*rank)()) {
      const Configuration& configuration = ranked.carried.configuration;
      if (visited == limit || violation(*question.spec, question.key.problem, configuration, constants)) {
        continue;
      }
      ++visited;
      if (!visit({ranked.match, ranked.record->evidence, ranked.record, configuration})) {
        return;
      }
    }
  }
  if (question.is_locked) {
    return;
  }
  visit_defaults(question, [&](const Configuration& configuration) {
    return visit({Match{Departure::Default}, Evidence::None, nullptr, configuration});
  });
}

std::vector<AnswerCandidate> rank_candidates(const Question& question, const IndexSnapshot& index,
                                             const CarryOver& carry, std::size_t limit) {
  std::vector<AnswerCandidate> candidates;
  const auto keep = [&](AnswerCandidate&& candidate) {
    candidates.push_back(std::move(candidate));
    return true;
  };
  visit_candidates(question, index, carry, keep, limit);
  return candidates;
}

std::optional<std::vector<std::string>> bucket_conditions(const Question& question,
                                                          const IndexSnapshot& index, const CarryOver& carry,
                                                          const RecordRow& record) {
  const std::vector<Ranked> ranked = Ranking(question, index, carry).of_bucket();
  const auto own =
      std::ranges::find_if(ranked, [&](const Ranked& item) { return item.record.get() == &record; });
  if (own == ranked.end()) {
    return std::nullopt;
  }
  // Which of two goes first by their distances differs from problem to problem.
  const bool is_tied = std::ranges::any_of(ranked, [&](const Ranked& item) {
    return item.match == own->match && item.evidence == own->evidence && item.size == own->size &&
           item.record->question.problem != record.question.problem;
  });
  if (is_tied) {
    return std::nullopt;
  }
  const DeviceConstants constants = device_constants(question.device.facts);
  std::vector<std::string> conditions;
  for (const Ranked& item : std::ranges::subrange(ranked.begin(), own)) {
    const auto condition =
        invalid_where(*question.spec, question.key.problem, item.carried.configuration, constants);
    if (!condition) {
      return std::nullopt;
    }
    if (std::ranges::find(conditions, *condition) == conditions.end()) {
      conditions.push_back(*condition);
    }
  }
  return conditions;
}

bool was_measured_here(const RecordRow& record) {
  return record.evidence == Evidence::Measured || record.evidence == Evidence::Replayed;
}

bool is_fresh(const Question& question, const AnswerCandidate& candidate) {
  if (!candidate.record || !candidate.match.exact() || candidate.record->provisional) {
    return false;
  }
  const RecordRow& record = *candidate.record;
  return was_measured_here(record) && record.verification.verified() &&
         record.verification.digest() == question.verification.view();
}

RecordPtr latest_measurement(const RecordQuestion& question, const IndexSnapshot& index) {
  const ClassRecords* records = index.records(question);
  if (!records) {
    return nullptr;
  }
  const auto found = records->by_problem.find(to_string(question.problem));
  if (found == records->by_problem.end()) {
    return nullptr;
  }
  RecordPtr latest;
  for (const RecordPtr& record : found->second) {
    if (was_measured_here(*record) && (!latest || record->id > latest->id)) {
      latest = record;
    }
  }
  return latest;
}

}  // namespace cubind
