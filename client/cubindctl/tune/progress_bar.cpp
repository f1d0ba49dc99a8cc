#include "client/cubindctl/tune/progress_bar.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "client/cubindctl/terminal/text_table.hpp"
#include "plan/wire.hpp"

namespace cubind::ctl {
namespace {

constexpr std::size_t kWidest = 20, kComfortable = 10, kNarrowest = 5;
constexpr std::size_t kBrackets = 3;  // "[" and "] "

std::string tally_text(const Tally& tally, bool in_words) {
  if (tally.expected <= 1) {
    return "";
  }
  return std::to_string(tally.done) + (in_words ? " of " : "/") + std::to_string(tally.expected) +
         (in_words ? " done " : " ");
}

std::string stage_text(const v1::Job& job) {
  std::string text;
  if (job.configurations() > 0) {  // they have been counted
    text = std::to_string(job.configurations_done()) + "/" + std::to_string(job.configurations()) + " ";
  }
  return text + state_text(job);
}

std::string best_text(const v1::TuneEvent& event) {
  return event.best_us() > 0 ? ", best screened " + fixed(event.best_us(), 2) + " us" : "";
}

std::string bar(const v1::Job& job, std::size_t width) {
  const std::size_t total = job.configurations();
  const std::size_t filled = total == 0 ? 0 : std::min(width, width * job.configurations_done() / total);
  return "[" + std::string(filled, '#') + std::string(width - filled, '-') + "] ";
}

// "12 s, about 25 s left": of all jobs so far.
std::string times_text(const v1::Job& job, const Tally& tally) {
  const double elapsed_ms = tally.measured_ms + job.elapsed_ms();
  if (elapsed_ms < 1000) {
    return "";
  }
  const std::optional<double> left_ms = time_left_ms(job, tally);
  return ", " + rough_time(elapsed_ms) + (left_ms ? ", about " + rough_time(*left_ms) + " left" : "");
}

// The line without its bar: the parts before and behind it.
struct Words {
  std::string before, behind;
  std::size_t least = kComfortable;  // the narrowest bar between them
  std::size_t size() const { return before.size() + behind.size(); }
};

// The forms of the words, the longest first.
std::vector<Words> choices_of_words(const v1::TuneEvent& event, const Tally& tally) {
  const v1::Job& job = event.job();
  const std::string replayed = replay_prefix(job.device());
  const std::string problem = to_string(problem_from_wire(job.problem(), "job.problem"));
  const std::string stage = stage_text(job), times = times_text(job, tally);
  const std::string progress = stage + best_text(event);
  const std::string timed = progress + times;
  const std::string words = replayed + tally_text(tally, true);
  const std::string short_words = replayed + tally_text(tally, false);
  std::vector<Words> choices = {
      {words, timed + ", " + job.kernel() + " " + problem}, {words, timed + ", " + problem}, {words, timed}};
  if (!times.empty()) {
    choices.push_back({short_words, stage + times, kNarrowest});
  }
  choices.push_back({words, progress});
  choices.push_back({short_words, progress, kNarrowest});
  return choices;
}

}  // namespace

std::string replay_prefix(const std::string& device) {
  return device.starts_with("replay") ? "replayed: " : "";
}

std::string state_text(const v1::Job& job) {
  switch (job.state()) {
    case v1::Job::NO_DEVICE:
      return "waits: no agent offers " + job.device() + (job.note().empty() ? "" : " (" + job.note() + ")");
    case v1::Job::WAITING_FOR_IDLE_GPU:
      return "waits: " + (job.note().empty() ? "another process uses the GPU" : job.note());
    case v1::Job::QUEUED:
      return "queued";
    default:
      return stage_of(job).empty() ? "running" : stage_of(job);
  }
}

std::string stage_of(const v1::Job& job) {
  const bool in_the_midst = 0 < job.configurations_done() && job.configurations_done() < job.configurations();
  const bool prepares = job.stage() == "compiling" || job.stage() == "verifying";
  return job.kind() == v1::Job::TUNE && in_the_midst && prepares ? "screening" : job.stage();
}

std::optional<double> time_left_ms(const v1::Job& job, const Tally& tally) {
  constexpr double kLeastShare = 0.05;  // of the configurations, before it says anything about the others
  const double share =
      job.configurations() == 0 ? 0 : static_cast<double>(job.configurations_done()) / job.configurations();
  std::optional<double> whole_ms;  // of a job like this one
  if (share >= kLeastShare) {
    whole_ms = job.elapsed_ms() / share;
  } else if (tally.measured > 0) {
    whole_ms = tally.measured_ms / static_cast<double>(tally.measured);
  }
  const std::size_t others = tally.expected > tally.done ? tally.expected - tally.done - 1 : 0;
  if (!whole_ms || (share >= 1 && others == 0)) {
    return std::nullopt;  // how long the finalists take is unknown
  }
  return std::max(*whole_ms - job.elapsed_ms(), 0.0) + *whole_ms * static_cast<double>(others);
}

std::string rough_time(double milliseconds) {
  if (milliseconds < 1000) {
    return std::to_string(std::llround(milliseconds)) + " ms";
  }
  const long long seconds = std::llround(milliseconds / 1000);
  if (seconds < 60) {
    return std::to_string(seconds) + " s";
  }
  if (seconds < 3600) {
    return std::to_string(seconds / 60) + " min " + std::to_string(seconds % 60) + " s";
  }
  return std::to_string(seconds / 3600) + " h " + std::to_string(seconds % 3600 / 60) + " min";
}

std::string bar_text(const v1::TuneEvent& event, const Tally& tally, std::size_t columns) {
  const std::vector<Words> choices = choices_of_words(event, tally);
  for (const Words& words : choices) {
    if (words.size() + kBrackets + words.least <= columns) {
      const std::size_t width = std::min(kWidest, columns - words.size() - kBrackets);
      return words.before + bar(event.job(), width) + words.behind;
    }
  }
  return (choices.back().before + choices.back().behind).substr(0, columns);
}

}  // namespace cubind::ctl
