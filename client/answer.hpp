// The daemon's answer, checked: the cubin has its digest, and the answer is for the question.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "plan/answer.hpp"
#include "plan/launch_plan.hpp"
#include "plan/problem.hpp"

namespace cubind {

namespace v1 {
class GetVariantReply;
}
class Rule;

/// A variant for one problem: configuration, launch plan, cubin and the evidence for it. Immutable, cheap to
/// copy, safe on many threads.
class Answer {
 public:
  /// `cubin` is the uncompressed artifact. Throws Error(DataLoss) if it does not have the promised digest or
  /// the reply's rule gives its own problem no launch plan, Error(InvalidArgument) if a field does not
  /// convert.
  Answer(std::shared_ptr<const v1::GetVariantReply> reply, std::shared_ptr<const std::string> cubin);

  const std::string& kernel() const;
  const Problem& problem() const { return problem_; }
  const Configuration& configuration() const;
  const LaunchPlan& plan() const { return plan_; }
  const std::string& cubin() const;
  const std::shared_ptr<const std::string>& shared_cubin() const;
  const Digest& cubin_digest() const;

  /// The other problems that this answer covers, and their launches.
  const std::shared_ptr<const Rule>& rule() const;

  /// Every launch of the rule, including those that this problem leaves out.
  const PlanTemplate& plan_template() const;
  /// The symbols of these launches' entries, each once.
  std::vector<std::string> entry_symbols() const;

  /// How the answer departs from the question; exact if it does not.
  const Match& match() const { return match_; }
  Evidence evidence() const;
  /// The rest of the reply: provenance, resources, generation. Its problem and plan are those of the question
  /// that was sent to the daemon.
  const v1::GetVariantReply& reply() const;

  /// The answer for another problem of the same bucket, by the reply's rule and without a call. Absent if the
  /// rule does not cover the problem (another bucket, its own record, a violated constraint or launch limit):
  /// then ask the daemon. `problem` is canonical: names in the order of problem().
  std::optional<Answer> for_problem(const Problem& problem) const;

 private:
  struct Shared;
  std::shared_ptr<const Shared> shared_;
  Problem problem_;
  LaunchPlan plan_;
  Match match_;
};

}  // namespace cubind
