#include "client/cubindctl/progress_bar.hpp"

#include <algorithm>
#include <vector>

#include "client/cubindctl/text_table.hpp"
#include "tuner/plan/wire.hpp"

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

std::string progress_text(const v1::TuneEvent& event) {
  const v1::Job& job = event.job();
  std::string text;
  if (job.configurations() > 0) {  // they have been counted
    text = std::to_string(job.configurations_done()) + "/" + std::to_string(job.configurations()) + " ";
  }
  text += state_text(job);
  return event.best_us() > 0 ? text + ", best " + fixed(event.best_us(), 2) + " us" : text;
}

std::string bar(const v1::Job& job, std::size_t width) {
  const std::size_t total = job.configurations();
  const std::size_t filled = total == 0 ? 0 : std::min(width, width * job.configurations_done() / total);
  return "[" + std::string(filled, '#') + std::string(width - filled, '-') + "] ";
}

// The line without its bar: the parts before and behind it.
struct Words {
  std::string before, behind;
  std::size_t size() const { return before.size() + behind.size(); }
};

// From the longest form to the shortest.
std::vector<Words> choices_of_words(const v1::TuneEvent& event, const Tally& tally) {
  const v1::Job& job = event.job();
  const std::string replayed = replay_prefix(job.device());
  const std::string problem = to_string(problem_from_wire(job.problem(), "job.problem"));
  const std::string progress = progress_text(event);
  const std::string words = replayed + tally_text(tally, true);
  return {{words, progress + ", " + job.kernel() + " " + problem},
          {words, progress + ", " + problem},
          {words, progress},
          {replayed + tally_text(tally, false), progress}};
}

}  // namespace

std::string replay_prefix(const std::string& device) {
  return device.starts_with("replay") ? "replayed: " : "";
}

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

std::string bar_text(const v1::TuneEvent& event, const Tally& tally, std::size_t columns) {
  const std::vector<Words> choices = choices_of_words(event, tally);
  for (const Words& words : choices) {
    const bool last = &words == &choices.back();
    const std::size_t least = kBrackets + (last ? kNarrowest : kComfortable);
    if (words.size() + least <= columns) {
      const std::size_t width = std::min(kWidest, columns - words.size() - kBrackets);
      return words.before + bar(event.job(), width) + words.behind;
    }
  }
  return (choices.back().before + choices.back().behind).substr(0, columns);
}

}  // namespace cubind::ctl
