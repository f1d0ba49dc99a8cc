// cubindctl tune --repeat: how far the choice depends on chance.
#pragma once

#include "client/cubindctl/exit_code.hpp"
#include "client/cubindctl/options.hpp"
#include "client/cubindctl/tune_requests.hpp"

namespace cubind::ctl {

/// Tunes the problems `count` times as if nothing were known of them, then measures all that were chosen
/// and the fastest others in many interleaved rounds, and prints what each choice costs. The last
/// measurement's winner is the stored record.
ExitCode repeat_tunes(const std::vector<KernelTune>& tunes, std::uint32_t count, const CommonOptions& common);

}  // namespace cubind::ctl
