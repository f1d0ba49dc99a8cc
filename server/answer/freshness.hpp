// Whether there is anything left to tune about a question.
#pragma once

#include <optional>

#include "server/answer/answerer.hpp"
#include "server/fleet.hpp"

namespace cubind {

/// The answer that tuning under this budget would only repeat: fresh (is_fresh()), and chosen by a search
/// that covers() the budget from the space that today's spec has for the problem. Absent: tune.
std::optional<AnswerCandidate> settled_answer(const Question& question, const SearchBudget& budget,
                                              Answerer& answerer, const IndexSnapshot& index);

/// Whether a measurement of the question's problem is one for its bucket: the problem represents the bucket,
/// and no problem of the bucket has been measured. Then a smaller one may be measured in its place.
bool stands_for_bucket(const Question& question, Answerer& answerer, const IndexSnapshot& index);

/// Whether a record that agents measured now would not be stale for the caller. It would be where the
/// caller's driver, toolchain or power limit is not that of their GPU: measuring again would change nothing.
bool tuning_refreshes(const Question& question, const AgentProfiles& agents);

/// Whether a new measurement by the agents would answer numerics `invariant:DIM`, which another toolchain's
/// record does not.
bool tuning_keeps_toolchain(const Question& question, const AgentProfiles& agents);

}  // namespace cubind
