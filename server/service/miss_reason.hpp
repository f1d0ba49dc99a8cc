// The reason why a miss gets nothing better.
#pragma once

#include <string>

#include "server/fleet.hpp"
#include "server/jobs/job_event.hpp"
#include "server/service/no_answer.hpp"

namespace cubind {

/// What the best candidate lacks: "stale: nvrtc 13.0, now nvrtc 13.5". Null: there is none.
/// Empty: it lacks nothing.
std::string shortfall_of(const Question& question, const AnswerCandidate* best);

/// Of a device by its label, which no agent offers.
std::string not_offered_because(const std::string& device, const AgentProfiles& agents);

/// The obstacle of the job. Empty: it is under way, or done.
std::string obstacle_of(const JobEvent& job, const AgentProfiles& agents);

/// The obstacle of the compile that would make the answer better: it failed, or has not ended yet.
std::string obstacle_of(const CompileAttempts& compiles, const Resolution& resolution);

}  // namespace cubind
