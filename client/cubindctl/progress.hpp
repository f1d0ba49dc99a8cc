// What a person sees of running jobs: one redrawn line on a terminal, plain lines elsewhere.
#pragma once

#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schemas/cubind.pb.h"

namespace cubind::ctl {

/// A terminal's line is drawn again with each event and cut to `columns`; elsewhere there is a line when a
/// job starts, when its phase changes and when it ends. Lines about a replay device begin with "replayed: ".
/// One thread.
class Progress {
 public:
  /// `jobs`: how many are expected at least, for "2 of 4".
  Progress(std::ostream& out, bool terminal, std::size_t columns, std::size_t jobs);

  void event(const v1::TuneEvent& event);
  /// Takes the redrawn line away.
  void finish();

  /// The last event of each job, and of each problem that needed none, in the order in which they were first
  /// seen.
  const std::vector<v1::TuneEvent>& jobs() const { return jobs_; }
  std::vector<std::string> unfinished() const;
  bool any_failed() const;

 private:
  void remember(const v1::TuneEvent& event);
  void draw(const v1::TuneEvent& event);
  void line(const std::string& text);

  std::ostream& out_;
  const bool terminal_;
  const std::size_t columns_;
  const std::size_t expected_;
  std::vector<v1::TuneEvent> jobs_;
  std::set<std::pair<std::string, std::string>> said_;  // job and phase that a plain line has told
  bool drawn_ = false;
};

bool has_ended(v1::Job::State state);

/// "[#####-----] 42/96 screening, best 24.30 us, rmsnorm_forward N=4096,D=4096,T=bf16".
std::string bar_text(const v1::TuneEvent& event);
/// What became of a job, in one line.
std::string result_text(const v1::TuneEvent& event);
/// "replayed: " for a replay device, else empty.
std::string replay_prefix(const std::string& device);

}  // namespace cubind::ctl
