// cubindctl tune --variants: few configurations for many problems.
#pragma once

#include "client/cubindctl/exit_code.hpp"
#include "client/cubindctl/options.hpp"
#include "client/cubindctl/tune_requests.hpp"

namespace cubind::ctl {

/// Tunes the problems, measures of each kernel the winners and the next fastest together at all of its
/// problems, and chooses the fewest that lose at most `most_regret` anywhere, `count` at most besides the
/// default. Then their records are chosen among these alone. Where no such set exists, the winners stay.
/// Prints the sets of every size.
ExitCode tune_variants(const std::vector<KernelTune>& tunes, std::uint32_t count, double most_regret,
                       const CommonOptions& common);

}  // namespace cubind::ctl
