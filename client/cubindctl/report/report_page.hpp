// The page of a report: one HTML file, its data and scripts inside.
#pragma once

#include <string>

#include "client/cubindctl/terminal/json_output.hpp"

namespace cubind::ctl {

/// The page that shows report_data(). It loads nothing: its content policy allows its own style and script
/// alone, by their digests. Names are data, never markup.
std::string report_page(const OutputJson& data);

/// The page of a verdict of Evaluate, which loads nothing either.
std::string verdict_page(const OutputJson& verdict);

/// The content policy that the page of a report names itself, for a server that sends it too.
std::string report_policy();

}  // namespace cubind::ctl
