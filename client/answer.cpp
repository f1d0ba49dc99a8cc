#include "client/answer.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "schemas/cubind.pb.h"
#include "tuner/plan/answer_wire.hpp"
#include "tuner/plan/wire.hpp"

namespace cubind {
namespace {

struct DimInterval {
  std::string dim;
  std::int64_t lower = 0, upper = 0;
};

}  // namespace

struct Answer::Shared {
  std::shared_ptr<const v1::GetVariantReply> reply;
  std::shared_ptr<const std::string> cubin;
  Digest digest;
  Problem asked;
  Configuration configuration;
  Match match;
  Evidence evidence = Evidence::None;
  std::vector<DimInterval> intervals;
  std::vector<Problem> own_records;
  std::optional<PlanEvaluator> evaluator;

  bool covers(const Problem& problem) const;
  bool within_intervals(const Problem& problem) const;
  std::optional<LaunchPlan> plan_for(const Problem& problem) const;
  void check_plan(const LaunchPlan& plan) const;
};

// Everything but the dims inside the intervals has to be equal.
bool Answer::Shared::covers(const Problem& problem) const {
  return problem.types == asked.types && problem.flags == asked.flags && problem.scenario == asked.scenario &&
         within_intervals(problem) && std::ranges::find(own_records, problem) == own_records.end();
}

bool Answer::Shared::within_intervals(const Problem& problem) const {
  const auto inside = [&](const NamedValue& dim, const NamedValue& own) {
    if (dim == own) {
      return true;
    }
    const auto interval = std::ranges::find(intervals, dim.name, &DimInterval::dim);
    return dim.name == own.name && interval != intervals.end() && interval->lower <= dim.value &&
           dim.value <= interval->upper;
  };
  return std::ranges::equal(problem.dims, asked.dims, inside);
}

// The daemon explains an expression that overflows here: it knows the spec's file.
std::optional<LaunchPlan> Answer::Shared::plan_for(const Problem& problem) const {
  try {
    return evaluator->evaluate(problem, configuration).plan;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// The plan and the rule come from the same reply: if they differ, one of them belongs to another
// configuration.
void Answer::Shared::check_plan(const LaunchPlan& plan) const {
  const PlanResult own = evaluator->evaluate(asked, configuration);
  if (!own.plan || *own.plan != plan) {
    throw Error(ErrorCode::DataLoss, "plan",
                "the launch plan for " + to_string(asked) + " differs from the reply's own rule" +
                    (own.plan ? std::string() : ": " + own.violation));
  }
}

Answer::Answer(std::shared_ptr<const v1::GetVariantReply> reply, std::shared_ptr<const std::string> cubin) {
  auto shared = std::make_shared<Shared>();
  shared->digest = digest_from_wire(reply->artifact().digest(), "artifact.digest");
  if (Digest::of(*cubin) != shared->digest) {
    throw Error(ErrorCode::DataLoss, "artifact",
                "the cubin of " + reply->kernel() + " does not have the digest that the daemon promised, " +
                    shared->digest.hex());
  }
  shared->asked = problem_from_wire(reply->problem(), "problem");
  shared->configuration = configuration_from_wire(reply->configuration(), "configuration");
  shared->match = match_from_wire(reply->provenance().departures(), "provenance.departures");
  shared->evidence = evidence_from_wire(reply->provenance().evidence(), "provenance.evidence");
  for (const v1::Interval& interval : reply->rule().intervals()) {
    shared->intervals.push_back({interval.dim(), interval.lower(), interval.upper()});
  }
  for (const v1::Problem& problem : reply->rule().own_records()) {
    shared->own_records.push_back(problem_from_wire(problem, "rule.own_records"));
  }
  shared->evaluator.emplace(plan_template_from_wire(reply->rule(), "rule"), shared->asked,
                            shared->configuration, device_constants_from_wire(reply->rule(), "rule"));
  problem_ = shared->asked;
  plan_ = plan_from_wire(reply->plan(), "plan");
  match_ = shared->match;
  shared->check_plan(plan_);
  shared->reply = std::move(reply);
  shared->cubin = std::move(cubin);
  shared_ = std::move(shared);
}

const std::string& Answer::kernel() const { return shared_->reply->kernel(); }
const Configuration& Answer::configuration() const { return shared_->configuration; }
const std::string& Answer::cubin() const { return *shared_->cubin; }
const std::shared_ptr<const std::string>& Answer::shared_cubin() const { return shared_->cubin; }
const Digest& Answer::cubin_digest() const { return shared_->digest; }
Evidence Answer::evidence() const { return shared_->evidence; }
const v1::GetVariantReply& Answer::reply() const { return *shared_->reply; }

const PlanTemplate& Answer::plan_template() const { return shared_->evaluator->plan_template(); }

std::vector<std::string> Answer::entry_symbols() const {
  std::vector<std::string> symbols;
  for (const LaunchTemplate& launch : plan_template().launches) {
    if (std::ranges::find(symbols, launch.entry_symbol) == symbols.end()) {
      symbols.push_back(launch.entry_symbol);
    }
  }
  return symbols;
}

std::optional<Answer> Answer::for_problem(const Problem& problem) const {
  if (problem == problem_) {
    return *this;
  }
  // The asked problem itself is covered, whatever own records the rule lists: this is its answer.
  if (problem != shared_->asked && !shared_->covers(problem)) {
    return std::nullopt;
  }
  std::optional<LaunchPlan> plan = shared_->plan_for(problem);
  if (!plan) {
    return std::nullopt;
  }
  Answer other = *this;
  other.problem_ = problem;
  other.plan_ = std::move(*plan);
  other.match_ = shared_->match;
  if (problem != shared_->asked) {
    other.match_.add(Departure::Bucket);
  }
  return other;
}

}  // namespace cubind
