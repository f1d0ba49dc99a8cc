// Decides whether anything is left to tune for a question.
#pragma once

#include <optional>

#include "server/answer/answerer.hpp"
#include "server/fleet.hpp"

namespace cubind {

/// The answer that tuning under this budget would only repeat: it is fresh (is_fresh()), and was chosen by a
/// search that covers() the budget, in the space that the current spec has for the problem. Absent: tune.
std::optional<AnswerCandidate> settled_answer(const Question& question, const SearchBudget& budget,
                                              Answerer& answerer, const IndexSnapshot& index);

/// Whether a measurement of the question's problem is for its bucket: the problem represents the bucket, and
/// no problem of the bucket has been measured. Then a smaller problem may be measured instead.
bool stands_for_bucket(const Question& question, Answerer& answerer, const IndexSnapshot& index);

/// Whether a record that agents measured now would be current for the caller. If the caller's driver,
/// toolchain or power limit differs from that of their GPUs, it would be stale, and measuring again would
/// change nothing.
bool tuning_refreshes(const Question& question, const AgentProfiles& agents);

/// Whether a new measurement by the agents would answer numerics `invariant:DIM`, which a record of another
/// toolchain does not.
bool tuning_keeps_toolchain(const Question& question, const AgentProfiles& agents);

}  // namespace cubind
