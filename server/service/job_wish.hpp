// What a question that nothing answers well enough wants to have tuned. Pure.
#pragma once

#include <optional>

#include "server/fleet.hpp"
#include "server/jobs/orders.hpp"
#include "server/lookup/lookup.hpp"

namespace cubind {

struct JobWish {
  TuneOrder order;
  bool retune = false;  // what is known of the problem is measured again
};

/// `best`: the best candidate that there is, whatever it departs in; null: there is none. Absent: agents can
/// measure nothing that would answer better.
std::optional<JobWish> job_wish(const Question& question, const AnswerCandidate* best,
                                const AgentProfiles& agents);

}  // namespace cubind
