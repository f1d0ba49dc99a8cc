#include "client/cubindctl/tune/watch.hpp"

#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.hpp"
#include "base/text.hpp"
#include "client/cubindctl/reply_json.hpp"
#include "client/cubindctl/terminal/plain_output.hpp"
#include "client/cubindctl/terminal/terminal.hpp"
#include "client/cubindctl/tune/progress.hpp"
#include "client/cubindctl/tune/stop_signals.hpp"

namespace cubind::ctl {
namespace {

Terminal terminal_of(const CommonOptions& common) {
  if (common.json || !can_redraw()) {
    return {};
  }
  // xterm cuts what no longer fits; all others break it into lines.
  return {output_columns, std::getenv("XTERM_VERSION") == nullptr};
}

void print_document(const Progress& progress, bool detached) {
  OutputJson jobs = OutputJson::array();
  for (const v1::TuneEvent& event : progress.jobs()) {
    jobs.push_back(json_of(event));
  }
  print_json({{"detached", detached}, {"jobs", jobs}});
}

void say_detached(std::ostream& out, const std::vector<std::string>& ids) {
  if (ids.empty()) {
    out << "Interrupted before the daemon named a job; `cubindctl jobs` lists the running jobs.\n";
    return;
  }
  const std::string all = join(ids, " ");
  out << "Detached; the daemon goes on with "
      << (ids.size() == 1 ? "job " + all : std::to_string(ids.size()) + " jobs")
      << ".\n  watch:  cubindctl jobs --watch " << all << "\n  end:    cubindctl cancel " << all << "\n";
}

}  // namespace

ExitCode follow(const CommonOptions& common, std::size_t jobs, const EventStream& stream) {
  const StopSignals interrupt;  // before the connection: its threads inherit the blocked signals
  Connection connection(resolve_address(common.address));
  std::ostringstream unseen;
  std::ostream terminal(terminal_buffer(std::cout));
  Progress progress(common.json ? static_cast<std::ostream&>(unseen) : terminal, terminal_of(common), jobs);
  try {
    stream(
        connection, [&](const v1::TuneEvent& event) { progress.event(event); }, interrupt.token());
  } catch (const Error& error) {
    progress.finish();
    if (error.code() != ErrorCode::Cancelled || !interrupt.requested()) {
      throw;
    }
  }
  progress.finish();
  const std::vector<std::string> unfinished = progress.unfinished();
  if (common.json) {
    print_document(progress, !unfinished.empty());
  }
  if (interrupt.requested() && (!unfinished.empty() || progress.jobs().empty())) {
    say_detached(std::cerr, unfinished);
    return ExitCode::Detached;
  }
  if (!unfinished.empty() && !common.json) {
    say_detached(std::cout, unfinished);  // as --detach asked
  }
  return progress.any_failed() ? ExitCode::TuningFailed : ExitCode::Ok;
}

}  // namespace cubind::ctl
