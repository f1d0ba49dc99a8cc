#include "client/answer.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "schemas/cubind.pb.h"
#include "tuner/plan/wire.hpp"

namespace cubind {

namespace {

struct Interval {
  std::string dim;
  std::int64_t lower = 0, upper = 0;
};

// In the order of the enum; the first value means "unspecified".
Departure departure_from_wire(int value) {
  if (value < 1 || value > static_cast<int>(kDepartureCount)) {
    throw Error(ErrorCode::InvalidArgument, "provenance.departures",
                "the daemon is newer than this client: departure " + std::to_string(value) + " is unknown");
  }
  return static_cast<Departure>(value - 1);
}

Digest digest_from_wire(const std::string& bytes, std::string_view field) {
  Digest digest;
  if (bytes.size() != digest.bytes.size()) {
    throw Error(ErrorCode::InvalidArgument, std::string(field), "a digest has 32 bytes, this has " + std::to_string(bytes.size()));
  }
  std::ranges::copy(bytes, reinterpret_cast<char*>(digest.bytes.data()));
  return digest;
}

}  // namespace

struct Answer::Shared {
  std::shared_ptr<const v1::GetVariantReply> reply;
  std::shared_ptr<const std::string> cubin;
  Digest digest;
  Problem asked;
  Configuration configuration;
  Match match;
  std::vector<Interval> intervals;
  std::vector<Problem> own_records;
  std::optional<PlanEvaluator> evaluator;

  bool covers(const Problem& problem) const;
};

// Everything but the dims inside the intervals has to be equal.
bool Answer::Shared::covers(const Problem& problem) const {
  if (problem.types != asked.types || problem.flags != asked.flags || problem.scenario != asked.scenario ||
      problem.dims.size() != asked.dims.size()) {
    return false;
  }
  for (std::size_t i = 0; i < problem.dims.size(); ++i) {
    const NamedValue& dim = problem.dims[i];
    if (dim == asked.dims[i]) continue;
    const auto interval = std::ranges::find(intervals, dim.name, &Interval::dim);
    if (dim.name != asked.dims[i].name || interval == intervals.end() || dim.value < interval->lower ||
        dim.value > interval->upper) {
      return false;
    }
  }
  return std::ranges::find(own_records, problem) == own_records.end();
}

Answer::Answer(std::shared_ptr<const v1::GetVariantReply> reply, std::shared_ptr<const std::string> cubin) {
  auto shared = std::make_shared<Shared>();
  shared->digest = digest_from_wire(reply->artifact().digest(), "artifact.digest");
  if (Digest::of(*cubin) != shared->digest) {
    throw Error(ErrorCode::DataLoss, "artifact",
                "the cubin of " + reply->kernel() + " does not have the digest that the daemon promised, " + shared->digest.hex());
  }
  shared->asked = problem_from_wire(reply->problem(), "problem");
  shared->configuration = configuration_from_wire(reply->configuration(), "configuration");
  for (const int departure : reply->provenance().departures()) shared->match.add(departure_from_wire(departure));
  for (const v1::Interval& interval : reply->rule().intervals()) {
    shared->intervals.push_back({interval.dim(), interval.lower(), interval.upper()});
  }
  for (const v1::Problem& problem : reply->rule().own_records()) {
    shared->own_records.push_back(problem_from_wire(problem, "rule.own_records"));
  }
  shared->evaluator.emplace(plan_template_from_wire(reply->rule(), "rule"), shared->asked, shared->configuration,
                            device_constants_from_wire(reply->rule(), "rule"));
  problem_ = shared->asked;
  plan_ = plan_from_wire(reply->plan(), "plan");
  match_ = shared->match;
  shared->reply = std::move(reply);
  shared->cubin = std::move(cubin);
  shared_ = std::move(shared);
}

const std::string& Answer::kernel() const { return shared_->reply->kernel(); }
const Configuration& Answer::configuration() const { return shared_->configuration; }
const std::string& Answer::cubin() const { return *shared_->cubin; }
const Digest& Answer::cubin_digest() const { return shared_->digest; }
Evidence Answer::evidence() const { return static_cast<Evidence>(shared_->reply->provenance().evidence()); }
const v1::GetVariantReply& Answer::reply() const { return *shared_->reply; }

std::optional<Answer> Answer::for_problem(const Problem& problem) const {
  if (problem == problem_) return *this;
  if (!shared_->covers(problem)) return std::nullopt;
  PlanResult result = shared_->evaluator->evaluate(problem, shared_->configuration);
  if (!result.plan) return std::nullopt;
  Answer other = *this;
  other.problem_ = problem;
  other.plan_ = std::move(*result.plan);
  other.match_ = shared_->match;
  if (problem != shared_->asked) other.match_.add(Departure::Bucket);
  return other;
}

}  // namespace cubind
