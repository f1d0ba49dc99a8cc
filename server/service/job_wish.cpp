#include "server/service/job_wish.hpp"

#include "server/answer/freshness.hpp"

namespace cubind {

std::optional<JobWish> job_wish(const Question& question, const AnswerCandidate* best,
                                const AgentProfiles& agents) {
  const bool is_invariant = question.key.numerics.kind == Numerics::Kind::Invariant;
  if (is_invariant && !tuning_keeps_toolchain(question, agents)) {
    return std::nullopt;
  }
  JobWish wish{{question.key, question.device}};
  RecordQuestion& wanted = wish.order.question;
  if (!best || !is_of_bucket(*best)) {
    wanted.problem = question.spec->representative(wanted.problem);
    wish.order.for_bucket = true;
    return wish;
  }
  if (best->match == Match{Departure::Bucket}) {
    return wish;  // the bucket has nothing better to offer: the caller wants its own problem measured
  }
  // The old measurement is repeated under today's driver, toolchain or source.
  wanted.problem = best->record->question.problem;
  wish.retune = best->match.has(Departure::Stale);
  const bool is_only_stale = wish.retune && best->match.within(Match{Departure::Bucket, Departure::Stale});
  if (is_only_stale && !tuning_refreshes(question, agents)) {
    return std::nullopt;
  }
  return wish;
}

}  // namespace cubind
