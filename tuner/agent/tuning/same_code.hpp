#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "tuner/agent/compile/compile_source.hpp"
#include "tuner/agent/tuning/candidates.hpp"
#include "tuner/agent/tuning/trial_log.hpp"
#include "tuner/spec/loaded_code.hpp"

namespace cubind {

/// Which of a job's trials run the same machine code by the same launches. One of them is measured for all:
/// the others would win or lose by chance. Used from the job's thread; log and artifacts must outlive it.
class SameCode {
 public:
  SameCode(const TrialLog& log, CompileSource& artifacts) : log_(log), artifacts_(artifacts) {}

  /// The trial that is measured for this one: the first that was asked for with its code and launches, maybe
  /// itself. The trial is compiled.
  const Candidate& measured_for(const Candidate& candidate);
  /// Of those that were asked for: the trials that another one is measured for, with that one.
  std::map<const Candidate*, const Candidate*> shared() const;

 private:
  struct Measured {
    const Candidate* candidate = nullptr;
    NamelessLaunch launch;
    bool is_read = false;
    std::optional<Digest> code = {};  // if is_read; absent: not known
  };
  const Candidate* find(const Candidate& candidate);
  bool are_same(Measured& earlier, Measured& later);
  const std::optional<Digest>& code_of(Measured& one);

  const TrialLog& log_;
  CompileSource& artifacts_;
  std::deque<Measured> measured_;
  std::map<const Candidate*, const Candidate*> measured_for_;
};

}  // namespace cubind
