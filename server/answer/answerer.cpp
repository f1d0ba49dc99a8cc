#include "server/answer/answerer.hpp"

#include <algorithm>

#include "plan/compiled_plan.hpp"

namespace cubind {
namespace {

bool same_but_for_dims(const Problem& a, const Problem& b) {
  return a.types == b.types && a.flags == b.flags && a.scenario == b.scenario &&
         a.dims.size() == b.dims.size();
}

std::vector<BucketRule::Interval> the_problem_alone(const Problem& problem) {
  std::vector<BucketRule::Interval> intervals;
  for (const NamedValue& dim : problem.dims) {
    intervals.push_back({dim.value, dim.value});
  }
  return intervals;
}

/// The problems of the bucket that have records, in the index's order, each once.
std::vector<Problem> measured_in_bucket(const Question& question,
                                        const std::vector<BucketRule::Interval>& bucket,
                                        const IndexSnapshot& index) {
  std::vector<Problem> problems;
  const ClassRecords* records = index.records(question.key);
  if (!records) {
    return problems;
  }
  const auto within = [&](Dims dims) { return in_bucket(bucket, dims); };
  for (const RecordPtr& record : records->select(bucket.size(), within)) {
    const Problem& problem = record->question.problem;
    if (same_but_for_dims(problem, question.key.problem) &&
        std::ranges::find(problems, problem) == problems.end()) {
      problems.push_back(problem);
    }
  }
  std::ranges::sort(problems, {}, [](const Problem& problem) { return to_string(problem); });
  return problems;
}

/// The answer's rule covers what its record answers of the bucket: any other departure is for the asked
/// problem alone.
void add_rule(ServedAnswer& answer, const IndexSnapshot& index, const CarryOver& carry) {
  const Problem& asked = answer.question.key.problem;
  answer.intervals = the_problem_alone(asked);
  if (!is_of_bucket(answer.candidate)) {
    return;
  }
  auto conditions = bucket_conditions(answer.question, index, carry, *answer.candidate.record);
  if (!conditions) {
    return;
  }
  answer.conditions = std::move(*conditions);
  const auto bucket = answer.question.spec->bucket(asked);
  std::vector<Problem> measured = measured_in_bucket(answer.question, bucket, index);
  answer.intervals = bucket;
  std::erase(measured, asked);
  answer.own_records = std::move(measured);
}

CompileOrder compile_order(const Question& question, const Configuration& configuration, const Digest& key) {
  CompileOrder order;
  order.question = question.key;
  order.device = question.device;
  order.key = key;
  order.configurations = {configuration};
  order.architecture = target_architecture(question);
  order.driver_cuda = question.driver ? question.driver->cuda : 0;
  return order;
}

bool is_hit(const AnswerCandidate& candidate, bool tolerance_is_explicit) {
  return candidate.record && (tolerance_is_explicit || candidate.match.within(Match{Departure::Bucket}));
}

}  // namespace

bool is_of_bucket(const AnswerCandidate& candidate) {
  return candidate.record &&
         candidate.match.within(Match{Departure::Bucket, Departure::Stale, Departure::OtherRevision});
}

std::vector<AnswerCandidate> Answerer::candidates(const Question& question, const IndexSnapshot& index) {
  return rank_candidates(question, index, revisions_.for_question(question));
}

Resolution Answerer::resolve(const Question& question, const IndexSnapshot& index,
                             const std::optional<Match>& accepted, const std::set<Digest>& failed) {
  const Match tolerated = accepted.value_or(all_departures());
  Resolution resolution;
  bool first = true;
  // Returns whether a worse candidate is of interest.
  const auto consider = [&](const AnswerCandidate& candidate) {
    if (!candidate.match.within(tolerated)) {
      resolution.best_refused = resolution.best_refused.value_or(candidate.match);
      return true;
    }
    FoundArtifact found = artifacts_.find(question, candidate);
    AnswerCandidate served = candidate;
    if (found.outdated) {
      served.match.add(Departure::Stale);
    }
    if (found.artifact && served.match.within(tolerated)) {
      std::string why;
      resolution.answer = complete(question, served, *found.artifact, index, why);
      if (!resolution.answer) {
        resolution.unlaunchable = resolution.unlaunchable.empty() ? why : resolution.unlaunchable;
        return true;
      }
    }
    if (std::exchange(first, false)) {
      resolution.hit = is_hit(candidate, accepted.has_value());
    }
    resolution.any_record = resolution.any_record || candidate.record;
    resolution.outdated = resolution.answer && found.outdated;
    if (resolution.answer && !found.outdated) {
      return false;
    }
    if (found.refused_toolchain) {
      resolution.refused_toolchain = found.refused_toolchain;
    }
    if (candidate.record && found.has_other_bits) {
      return true;  // today's compile would have other bits again
    }
    const Digest key = compile_key(question, candidate.configuration);
    const bool compiles = !failed.contains(key);
    if (!resolution.compile && compiles) {
      resolution.compile = compile_order(question, candidate.configuration, key);
    }
    if (resolution.answer) {
      return false;
    }
    return candidate.record || !compiles;  // the next default is for one that cannot be used
  };
  visit_candidates(question, index, revisions_.for_question(question), consider);
  return resolution;
}

std::string Answerer::fault_of(const ServedAnswer& answer) {
  const RecordRow* record = answer.candidate.record.get();
  const Question& question = answer.question;
  if (record && record->cubin == answer.artifact.cubin && record->question.problem == question.key.problem) {
    return "";  // these bytes were launched so when they were measured
  }
  const auto faults = entry_faults(answer.plan_template, answer.plan, *entries_.of(answer.artifact));
  return faults.empty() ? ""
                        : question.spec->file + " " + faults.front().pointer + ": " + faults.front().cause +
                              " (" + to_string(answer.candidate.configuration) + ")";
}

std::optional<ServedAnswer> Answerer::complete(const Question& question, const AnswerCandidate& candidate,
                                               const ArtifactRow& artifact, const IndexSnapshot& index,
                                               std::string& why) {
  ServedAnswer answer;
  answer.question = question;
  answer.candidate = candidate;
  answer.artifact = artifact;
  answer.generation = index.generation();
  const Problem& problem = question.key.problem;
  answer.plan_template = as_compiled(question.spec->plan_template(problem, candidate.configuration),
                                     artifact.entries, artifact.entry_symbols, artifact.resources);
  // Once more, now that the entries' shared memory is known.
  const PlanEvaluator evaluator(answer.plan_template, problem, candidate.configuration,
                                device_constants(question.device.facts));
  PlanResult result = evaluator.evaluate(problem, candidate.configuration);
  why = result.plan ? "" : question.spec->file + ": " + result.violation;
  if (!result.plan) {
    return std::nullopt;
  }
  answer.plan = std::move(*result.plan);
  why = fault_of(answer);
  if (!why.empty()) {
    return std::nullopt;
  }
  add_rule(answer, index, revisions_.for_question(question));
  if (const RecordRow* record = candidate.record.get()) {
    const DeviceClass* device = index.device(record->question.device_class);
    answer.measured_device = device ? device->label : "";
    answer.verified =
        record->verification.verified() && record->verification.digest() == question.verification.view();
    answer.same_bytes_measured = record->cubin == artifact.cubin;
  }
  return answer;
}

}  // namespace cubind
