// The display of running jobs: one redrawn line on a terminal, plain lines elsewhere.
#pragma once

#include <cstddef>
#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schemas/cubind.pb.h"

namespace cubind::ctl {

struct Terminal {
  std::function<std::size_t()> columns;  // now: a window is made wider and narrower; empty: there is none
  bool reflows = true;                   // breaks a line that no longer fits into several
};

/// A terminal's line is drawn again with each event and never wraps; elsewhere there is a line when a job
/// starts, when its stage changes and when it ends. Lines about a replay device begin with "replayed: ". One
/// thread. What others wrote moves no cursor.
class Progress {
 public:
  /// `jobs`: the least number of expected jobs, for "2 of 4".
  Progress(std::ostream& out, Terminal terminal, std::size_t jobs);

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
  const v1::TuneEvent& shown(const v1::TuneEvent& event) const;
  void draw(const v1::TuneEvent& event);
  std::string to_line_start() const;
  void line(const std::string& text);

  std::ostream& out_;
  const Terminal terminal_;
  const std::size_t expected_;
  std::vector<v1::TuneEvent> jobs_;
  std::set<std::pair<std::string, std::string>> said_;  // job and stage that a plain line has told
  std::string drawn_;                                   // the line on the terminal; empty: there is none
};

bool has_ended(v1::Job::State state);

/// Why it failed, its present work, or another remark; empty if there is nothing to say.
std::string detail_of(const v1::Job& job);

/// The end of a job, in one line.
std::string result_text(const v1::TuneEvent& event);

}  // namespace cubind::ctl
