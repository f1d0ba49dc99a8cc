#include "client/cubindctl/tune/progress.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "client/cubindctl/answers/comparison_output.hpp"
#include "client/cubindctl/reply_json.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "client/cubindctl/terminal/text_wrap.hpp"
#include "client/cubindctl/tune/progress_bar.hpp"
#include "plan/wire.hpp"

namespace cubind::ctl {
namespace {

// Room at the terminal's right: for the cursor, and for the ^C that the terminal prints at it.
constexpr std::size_t kMargin = 3;

std::string subject(const v1::Job& job) {
  return job.kernel() + " " + to_string(problem_from_wire(job.problem(), "job.problem"));
}

std::string winner_text(const v1::TuneEvent& event) {
  const v1::Provenance& provenance = event.provenance();
  std::string text = fixed(provenance.timing().median_us(), 2) + " us [" +
                     fixed(provenance.timing().low_us(), 2) + ", " + fixed(provenance.timing().high_us(), 2) +
                     "]";
  if (const auto gain = over_default(provenance.timing())) {
    text += ", " + fixed(*gain, 2) + "x the default";
  }
  return text + ", " + to_string(configuration_from_wire(event.winner(), "winner")) + ", " +
         evidence_name(provenance.evidence()) + (provenance.provisional() ? ", provisional" : "");
}

std::string flush_text(const v1::TuneEvent& event) {
  const std::uint32_t before = event.before().policy().flush_method();
  return before != event.job().policy().flush_method()
             ? ", the L2 cleared as in cold/" + std::to_string(before)
             : "";
}

// What measuring a record again has changed.
std::string change_text(const v1::TuneEvent& event) {
  const v1::Provenance& before = event.before().provenance();
  const double percent = change_percent(event);
  std::string text = "; was " + fixed(before.timing().median_us(), 2) + " us with driver " +
                     before.driver().version() + " and " + before.toolchain() + flush_text(event) + ", now " +
                     (percent < 0 ? "" : "+") + fixed(percent, 1) + " %";
  if (!winner_changed(event)) {
    return text + ", the winner stays";
  }
  return text + ", the winner was " +
         to_string(configuration_from_wire(event.before().winner(), "before.winner"));
}

}  // namespace

std::string detail_of(const v1::Job& job) {
  if (!job.error().empty()) {
    return job.error();
  }
  if (job.state() == v1::Job::NO_DEVICE || job.state() == v1::Job::WAITING_FOR_IDLE_GPU) {
    return state_text(job);
  }
  if (!has_ended(job.state()) && !job.stage().empty()) {
    return stage_of(job);
  }
  return job.note();
}

bool has_ended(v1::Job::State state) {
  return state == v1::Job::DONE || state == v1::Job::FAILED || state == v1::Job::CANCELLED;
}

std::string result_text(const v1::TuneEvent& event) {
  const v1::Job& job = event.job();
  std::string text = replay_prefix(job.device()) + subject(job) + " on " + job.device() + ": ";
  if (job.state() != v1::Job::DONE) {
    return text + state_name(job.state()) + (job.error().empty() ? "" : ": " + one_line(job.error()));
  }
  if (!event.has_winner()) {
    return text + "done";
  }
  text += winner_text(event);
  if (event.already_fresh()) {
    return text + "; fresh already, nothing was measured";
  }
  text += "; " + counted(job.configurations(), "configuration") + " in " + fixed(job.elapsed_ms() / 1000, 1) +
          " s";
  return event.has_before() ? text + change_text(event) : text;
}

Progress::Progress(std::ostream& out, Terminal terminal, std::size_t jobs)
    : out_(out), terminal_(std::move(terminal)), expected_(jobs) {}

void Progress::event(const v1::TuneEvent& event) {
  remember(event);
  const v1::Job& job = event.job();
  const bool ended = has_ended(job.state());
  if (ended) {
    finish();
    line(wrapped(result_text(event), terminal_.columns ? terminal_.columns() : 0,
                 replay_prefix(job.device())));
  } else if (terminal_.columns) {
    draw(event);
  } else if (said_.emplace(job.id(), state_text(job)).second) {
    // Stages alternate while a job compiles ahead of its measurements: each is printed once.
    line(replay_prefix(job.device()) + subject(job) + ": " + state_text(job) + " (job " + job.id() + ")");
  }
}

// A fresh problem has no job: it gets a line of its own.
void Progress::remember(const v1::TuneEvent& event) {
  const auto key = [](const v1::TuneEvent& seen) {
    return seen.job().id().empty() ? subject(seen.job()) : seen.job().id();
  };
  const auto known = std::ranges::find(jobs_, key(event), key);
  if (known == jobs_.end()) {
    jobs_.push_back(event);
  } else {
    *known = event;
  }
}

// Several jobs may take turns: the line is about a running one, if there is one.
const v1::TuneEvent& Progress::shown(const v1::TuneEvent& event) const {
  const auto runs = [](const v1::TuneEvent& seen) { return seen.job().state() == v1::Job::RUNNING; };
  const auto running = std::ranges::find_if(jobs_, runs);
  return runs(event) || running == jobs_.end() ? event : *running;
}

void Progress::draw(const v1::TuneEvent& event) {
  const auto done =
      std::ranges::count_if(jobs_, [](const auto& seen) { return has_ended(seen.job().state()); });
  Tally tally{static_cast<std::size_t>(done), std::max(expected_, jobs_.size())};
  for (const v1::TuneEvent& seen : jobs_) {
    if (has_ended(seen.job().state()) && seen.job().elapsed_ms() > 0) {
      ++tally.measured;
      tally.measured_ms += seen.job().elapsed_ms();
    }
  }
  const std::size_t columns = terminal_.columns();
  const std::string text =
      printable(bar_text(shown(event), tally, columns > kMargin ? columns - kMargin : 1));
  if (text == drawn_) {
    return;
  }
  out_ << to_line_start() << text << "\x1b[K" << std::flush;
  drawn_ = text;
}

// A terminal that has become narrower has broken the line into several.
std::string Progress::to_line_start() const {
  const std::size_t columns = terminal_.columns();
  if (!terminal_.reflows || columns == 0 || drawn_.size() <= columns) {
    return "\r";
  }
  return "\r\x1b[" + std::to_string((drawn_.size() - 1) / columns) + "A\x1b[J";
}

void Progress::finish() {
  if (!drawn_.empty()) {
    out_ << to_line_start() << "\x1b[K" << std::flush;
    drawn_.clear();
  }
}

void Progress::line(const std::string& text) { out_ << printable(text) << '\n' << std::flush; }

std::vector<std::string> Progress::unfinished() const {
  std::vector<std::string> ids;
  for (const v1::TuneEvent& event : jobs_) {
    if (!has_ended(event.job().state())) {
      ids.push_back(event.job().id());
    }
  }
  return ids;
}

bool Progress::any_failed() const {
  return std::ranges::any_of(jobs_, [](const v1::TuneEvent& event) {
    return event.job().state() == v1::Job::FAILED || event.job().state() == v1::Job::CANCELLED;
  });
}

}  // namespace cubind::ctl
