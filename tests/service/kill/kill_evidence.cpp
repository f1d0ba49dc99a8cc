#include "tests/service/kill/kill_evidence.hpp"

#include <algorithm>
#include <set>
#include <sstream>
#include <tuple>

#include "tuner/table/table_samples.hpp"

namespace cubind::test {
namespace {

// Trial key, stage, number of the first sample.
using BlockName = std::tuple<std::string, std::string, std::size_t>;

const std::string kUnknown = "unknown";

std::string describe(const BlockName& block) {
  return std::get<0>(block).substr(0, 12) + " " + std::get<1>(block) + " from sample " +
         std::to_string(std::get<2>(block));
}

class Evidence {
 public:
  Evidence(const Table& stored, const Table& played, std::size_t kills) : kills_(kills) {
    for (const TableTrial& trial : played.trials) {
      played_[name_of(trial)] = &trial;
    }
    for (const TableTrial& trial : stored.trials) {
      add_stored(trial);
    }
  }

  void add_measured(const std::string& line) {
    std::istringstream words(line);
    std::string trial, stage;
    std::size_t first = 0;
    words >> trial >> stage >> first;
    const auto problem = problems_.find(trial);
    if (problem == problems_.end()) {
      by_problem_[kUnknown].faults.push_back("measured and its trial is not stored: " + line);
      return;
    }
    ++by_problem_[problem->second].measured;
    ++measured_[{trial, stage, first}];
  }

  void add_acknowledged(const std::string& line) { ++acknowledged_[line]; }

  std::map<std::string, KillEvidence> judge() {
    for (const auto& [block, times] : measured_) {
      judge(block, times);
    }
    for (const BlockName& block : stored_) {
      if (!measured_.contains(block)) {
        fault(block, "stored and never measured");
      }
    }
    for (const auto& [problem, measurements] : repeated_) {
      by_problem_[problem].measurements = measurements.size();
      if (measurements.size() > kMostLost * kills_) {
        by_problem_[problem].faults.push_back("measured again: " + std::to_string(measurements.size()) +
                                              " times; a kill costs at most " + std::to_string(kMostLost));
      }
    }
    judge_acknowledged();
    return std::move(by_problem_);
  }

 private:
  static std::string name_of(const TableTrial& trial) {
    return to_string(trial.context.problem) + " " + to_string(trial.context.configuration);
  }

  void add_stored(const TableTrial& trial) {
    const std::string key = trial.context.trial.hex(), problem = to_string(trial.context.problem);
    problems_[key] = problem;
    const TableTrial& played = *played_.at(name_of(trial));
    add_stage(trial.screening, played.screening, {key, "SCREEN", 0});
    add_stage(trial.finals, played.finals, {key, "FINAL", 0});
  }

  void add_stage(const std::vector<SampleBlock>& blocks, const std::vector<SampleBlock>& played,
                 BlockName name) {
    const std::vector<double> has = samples_of(blocks), plays = samples_of(played);
    if (std::ranges::mismatch(has, plays).in1 != has.end()) {
      fault(name, std::to_string(has.size()) + " stored samples are not the first of the " +
                      std::to_string(plays.size()) + " that the device plays");
    }
    for (const SampleBlock& block : blocks) {
      stored_.insert(name);
      ++by_problem_[problems_.at(std::get<0>(name))].stored;
      std::get<2>(name) += block.samples_us_size();
    }
  }

  void judge(const BlockName& block, std::size_t times) {
    if (!stored_.contains(block)) {
      fault(block, "measured and lost");
    }
    if (times > kills_ + 1) {
      fault(block, "measured " + std::to_string(times) + " times");
    }
    if (times < 2) {
      return;
    }
    const auto& [trial, stage, first] = block;
    const std::string problem = problems_.at(trial);
    by_problem_[problem].repeated += times - 1;
    // The blocks of a round begin at the same sample.
    repeated_[problem].insert(stage == "FINAL" ? stage + std::to_string(first)
                                               : trial + std::to_string(first));
  }

  // What is measured after its acknowledgement is acknowledged once more.
  void judge_acknowledged() {
    for (const auto& [block, times] : acknowledged_) {
      const auto problem = problems_.find(block.substr(0, block.find(' ')));
      const std::string& name = problem == problems_.end() ? kUnknown : problem->second;
      if (problem == problems_.end() || times > 1) {
        by_problem_[name].faults.push_back(block + ": acknowledged " + std::to_string(times) + " times" +
                                           (times > 1 ? ", so it was measured after it had been" : ""));
      }
    }
  }

  void fault(const BlockName& block, const std::string& what) {
    by_problem_[problems_.at(std::get<0>(block))].faults.push_back(describe(block) + ": " + what);
  }

  const std::size_t kills_;
  std::map<std::string, const TableTrial*> played_;
  std::map<std::string, std::string> problems_;  // by trial key
  std::map<BlockName, std::size_t> measured_;
  std::map<std::string, std::size_t> acknowledged_;
  std::set<BlockName> stored_;
  std::map<std::string, std::set<std::string>> repeated_;  // measurements, by problem
  std::map<std::string, KillEvidence> by_problem_;
};

}  // namespace

std::map<std::string, KillEvidence> gather_evidence(const std::vector<std::string>& log,
                                                    const std::vector<std::string>& acknowledged,
                                                    const Table& stored, const Table& played,
                                                    std::size_t kills) {
  Evidence evidence(stored, played, kills);
  for (const std::string& line : log) {
    evidence.add_measured(line);
  }
  for (const std::string& block : acknowledged) {
    evidence.add_acknowledged(block);
  }
  return evidence.judge();
}

}  // namespace cubind::test
