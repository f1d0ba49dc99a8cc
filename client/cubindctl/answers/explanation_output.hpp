// An explanation as text and as JSON.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <ostream>

#include "client/cubindctl/answers/explanation.hpp"
#include "client/cubindctl/terminal/json_output.hpp"

namespace cubind::ctl {

inline constexpr std::size_t kBestTrials = 10;

/// The document that docs/cli.md describes, with `best` of the fastest trials.
OutputJson json_of(const Explanation& explanation, const ExplainedQuestion& question,
                   std::size_t best = kBestTrials);

/// `columns`: of the terminal, 0 where there is none.
void print(std::ostream& out, const Explanation& explanation, const ExplainedQuestion& question,
           std::size_t columns);

/// Why the winner won, in one sentence. Empty where the samples are missing.
std::string reason_of(const Explanation& explanation);

}  // namespace cubind::ctl
