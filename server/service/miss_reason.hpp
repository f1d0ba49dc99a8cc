// The reason why a miss gets nothing better.
#pragma once

#include <string>

#include "server/fleet.hpp"
#include "server/jobs/job_event.hpp"
#include "server/service/no_answer.hpp"

namespace cubind {

/// The obstacle of the job. Empty: it is under way, or done.
std::string obstacle_of(const JobEvent& job, const AgentProfiles& agents);

/// The obstacle of the compile that would make the answer better: it failed, or has not ended yet.
std::string obstacle_of(const CompileAttempts& compiles, const Resolution& resolution);

}  // namespace cubind
