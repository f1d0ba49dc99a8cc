// The commands that repeat what a report shows, as a shell reads them.
#pragma once

#include <string>
#include <string_view>

#include "client/cubindctl/answers/explanation.hpp"

namespace cubind::ctl {

/// One word of a shell, in quotes unless every character is plain.
std::string shell_word(std::string_view text);

/// Tunes the problem: with `again` also if its record is fresh.
std::string tune_command(const ExplainedQuestion& question, const std::string& device, bool again);

/// Forgets that the configuration failed, and tries it again.
std::string retry_command(const ExplainedQuestion& question, const std::string& device,
                          const Configuration& configuration);

}  // namespace cubind::ctl
