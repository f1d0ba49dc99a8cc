// Whether there is anything left to tune about a question.
#pragma once

#include <optional>

#include "server/answer/answerer.hpp"

namespace cubind {

class Store;

/// The answer that tuning would only repeat: fresh (is_fresh()) and chosen from every configuration that
/// today's spec has for the problem. Absent: tune. Reads the store and enumerates the space: not for the job
/// thread.
std::optional<AnswerCandidate> settled_answer(const Question& question, Answerer& answerer,
                                              const IndexSnapshot& index, Store& store);

}  // namespace cubind
