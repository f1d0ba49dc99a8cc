// Following jobs until they end or Ctrl-C.
#pragma once

#include <functional>
#include <optional>

#include "client/connection.hpp"
#include "client/cubindctl/options.hpp"
#include "client/cubindctl/terminal/exit_code.hpp"

namespace cubind::ctl {

/// A stream of events: Connection::tune or watch_job, bound to its request.
using EventStream = std::function<void(Connection&, const OnTuneEvent&, std::stop_token)>;

/// Follows the stream with a progress bar on a terminal, plain lines elsewhere, and one JSON document at the
/// end with
/// --json. Ctrl-C ends the call, not the jobs, and prints their ids. `jobs`: the expected number; 0: unknown.
ExitCode follow(const CommonOptions& common, std::size_t jobs, const EventStream& stream);

}  // namespace cubind::ctl
