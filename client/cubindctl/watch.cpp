#include "client/cubindctl/watch.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.hpp"
#include "base/text.hpp"
#include "client/cubindctl/interrupt.hpp"
#include "client/cubindctl/json_output.hpp"
#include "client/cubindctl/progress.hpp"

namespace cubind::ctl {
namespace {

std::size_t terminal_columns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
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
    out << "Interrupted before the daemon told of a job; `cubindctl jobs` lists what runs.\n";
    return;
  }
  out << "Detached; the daemon goes on with job " << join(ids, ", ") << ".\n"
      << "Watch it with `cubindctl jobs --watch " << ids.front() << "`, end it with `cubindctl cancel "
      << join(ids, " ") << "`.\n";
}

}  // namespace

ExitCode follow(const CommonOptions& common, std::size_t jobs, const EventStream& stream) {
  const Interrupt interrupt;  // before the connection: its threads inherit the blocked signals
  Connection connection(resolve_address(common.address));
  std::ostringstream unseen;
  const bool terminal = isatty(STDOUT_FILENO) == 1 && !common.json;
  Progress progress(common.json ? static_cast<std::ostream&>(unseen) : std::cout, terminal,
                    terminal_columns(), jobs);
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
