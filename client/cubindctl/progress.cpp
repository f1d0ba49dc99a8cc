#include "client/cubindctl/progress.hpp"

#include <algorithm>

#include "client/cubindctl/json_output.hpp"
#include "client/cubindctl/text_table.hpp"
#include "tuner/plan/wire.hpp"

namespace cubind::ctl {
namespace {

constexpr std::size_t kBarWidth = 20;

std::string subject(const v1::Job& job) {
  return job.kernel() + " " + to_string(problem_from_wire(job.problem(), "job.problem"));
}

std::string count_text(const v1::Job& job) {
  return std::to_string(job.configurations_done()) + "/" + std::to_string(job.configurations());
}

// An error of several lines in one.
std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string winner_text(const v1::TuneEvent& event) {
  const v1::Provenance& provenance = event.provenance();
  std::string text = fixed(provenance.median_us(), 2) + " us [" + fixed(provenance.median_low_us(), 2) +
                     ", " + fixed(provenance.median_high_us(), 2) + "]";
  if (provenance.gain_over_default() > 0) {
    text += ", " + fixed(provenance.gain_over_default(), 2) + "x the default";
  }
  return text + ", " + to_string(configuration_from_wire(event.winner(), "winner")) + ", " +
         evidence_name(provenance.evidence()) + (provenance.provisional() ? ", provisional" : "");
}

// What a job that has not ended is at.
std::string state_text(const v1::Job& job) {
  switch (job.state()) {
    case v1::Job::NO_DEVICE:
      return "waits: no agent offers " + job.device();
    case v1::Job::WAITING_FOR_IDLE_GPU:
      return "waits: another process uses the GPU";
    case v1::Job::QUEUED:
      return "queued";
    default:
      return job.phase().empty() ? "running" : job.phase();
  }
}

}  // namespace

bool has_ended(v1::Job::State state) {
  return state == v1::Job::DONE || state == v1::Job::FAILED || state == v1::Job::CANCELLED;
}

std::string replay_prefix(const std::string& device) {
  return device.starts_with("replay") ? "replayed: " : "";
}

std::string bar_text(const v1::TuneEvent& event) {
  const v1::Job& job = event.job();
  const std::size_t total = std::max(1u, job.configurations());
  const std::size_t filled = std::min(kBarWidth, kBarWidth * job.configurations_done() / total);
  std::string text = "[" + std::string(filled, '#') + std::string(kBarWidth - filled, '-') + "] " +
                     count_text(job) + " " + state_text(job);
  if (event.best_us() > 0) {
    text += ", best " + fixed(event.best_us(), 2) + " us";
  }
  return replay_prefix(job.device()) + text + ", " + subject(job);
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
  return text + "; " + std::to_string(job.configurations()) + " configurations in " +
         fixed(job.elapsed_ms() / 1000, 1) + " s";
}

Progress::Progress(std::ostream& out, bool terminal, std::size_t columns, std::size_t jobs)
    : out_(out), terminal_(terminal), columns_(columns), expected_(jobs) {}

void Progress::event(const v1::TuneEvent& event) {
  remember(event);
  const v1::Job& job = event.job();
  const bool ended = has_ended(job.state());
  if (ended) {
    finish();
    line(result_text(event));
  } else if (terminal_) {
    draw(event);
  } else if (said_.emplace(job.id(), state_text(job)).second) {
    // Phases alternate while a job compiles ahead of its measurements: each is told once.
    line(replay_prefix(job.device()) + subject(job) + ": " + state_text(job) + " (job " + job.id() + ")");
  }
}

// A problem that was fresh has no job: it is told by itself.
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

void Progress::draw(const v1::TuneEvent& event) {
  std::string text = bar_text(event);
  if (const std::size_t expected = std::max(expected_, jobs_.size()); expected > 1) {
    const auto done =
        std::ranges::count_if(jobs_, [](const auto& seen) { return has_ended(seen.job().state()); });
    text = std::to_string(done) + " of " + std::to_string(expected) + " done " + text;
  }
  if (columns_ > 1 && text.size() >= columns_) {
    text.resize(columns_ - 1);  // a line that wraps could not be taken back
  }
  out_ << '\r' << text << "\x1b[K" << std::flush;
  drawn_ = true;
}

void Progress::finish() {
  if (drawn_) {
    out_ << "\r\x1b[K" << std::flush;
    drawn_ = false;
  }
}

void Progress::line(const std::string& text) { out_ << text << '\n' << std::flush; }

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
