#include "client/answer.hpp"

#include <utility>

#include "base/error.hpp"
#include "client/reply_check.hpp"
#include "launch/entry_symbols.hpp"
#include "plan/answer_wire.hpp"
#include "schemas/cubind.pb.h"

namespace cubind {
struct Answer::Shared {
  std::shared_ptr<const v1::GetVariantReply> reply;
  std::shared_ptr<const std::string> cubin;
  Digest digest;
  Match match;
  Evidence evidence = Evidence::None;
  std::shared_ptr<const Rule> rule;
};

Answer::Answer(std::shared_ptr<const v1::GetVariantReply> reply, std::shared_ptr<const std::string> cubin) {
  auto shared = std::make_shared<Shared>();
  shared->digest = digest_from_wire(reply->artifact().digest(), "artifact.digest");
  if (Digest::of(*cubin) != shared->digest) {
    throw Error(ErrorCode::DataLoss, "artifact",
                "the cubin of " + reply->kernel() + " does not have the digest that the daemon promised, " +
                    shared->digest.hex());
  }
  Told told = read_told(reply->SerializeAsString());
  shared->match = told.match;
  shared->evidence = told.evidence;
  shared->rule = std::make_shared<const Rule>(std::move(told.rule));
  problem_ = shared->rule->asked();
  match_ = shared->match;
  std::optional<LaunchPlan> plan = shared->rule->plan_for(problem_);
  if (!plan) {
    throw Error(
        ErrorCode::DataLoss, "rule",
        "the answer for " + to_string(problem_) + " has no launch plan: " + shared->rule->violation());
  }
  plan_ = std::move(*plan);
  shared->reply = std::move(reply);
  shared->cubin = std::move(cubin);
  shared_ = std::move(shared);
}

const std::string& Answer::kernel() const { return shared_->reply->kernel(); }
const Configuration& Answer::configuration() const { return shared_->rule->configuration(); }
const std::string& Answer::cubin() const { return *shared_->cubin; }
const std::shared_ptr<const std::string>& Answer::shared_cubin() const { return shared_->cubin; }
const Digest& Answer::cubin_digest() const { return shared_->digest; }
Evidence Answer::evidence() const { return shared_->evidence; }
const v1::GetVariantReply& Answer::reply() const { return *shared_->reply; }

const std::shared_ptr<const Rule>& Answer::rule() const { return shared_->rule; }

const PlanTemplate& Answer::plan_template() const { return shared_->rule->program().plan_template(); }

std::vector<std::string> Answer::entry_symbols() const { return cubind::entry_symbols(plan_template()); }

std::optional<Answer> Answer::for_problem(const Problem& problem) const {
  if (problem == problem_) {
    return *this;
  }
  std::optional<LaunchPlan> plan = shared_->rule->plan_for(problem);
  if (!plan) {
    return std::nullopt;
  }
  Answer other = *this;
  other.problem_ = problem;
  other.plan_ = std::move(*plan);
  other.match_ = shared_->match;
  if (problem != shared_->rule->asked()) {
    other.match_.add(Departure::Bucket);
  }
  return other;
}

}  // namespace cubind
