#include "tuner/worker/replay_table.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "base/error.hpp"
#include "base/key_encoder.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "tuner/table/table_samples.hpp"

namespace cubind::worker {
namespace {

constexpr std::size_t kProblemsNamed = 5;  // in a message; a table may hold hundreds

// The kernel of a verdict has another name each time: "judged_scale_0123456789abcdef" is recorded as
// "judged_scale".
std::string recorded_name(const std::string& kernel) {
  return kernel.starts_with("judged_") ? kernel.substr(0, kernel.rfind('_')) : kernel;
}

std::string name_of(const std::string& kernel, const Problem& problem, const Configuration& configuration) {
  return kernel + '\n' + to_string(problem) + '\n' + to_string(configuration);
}

// A trial that never was a finalist has screening samples alone, and they serve for both stages.
std::vector<double> pool(const TableTrial& trial, ReplayTable::Stage stage) {
  std::vector<double> finals = samples_of(trial.finals);
  if (stage == ReplayTable::Stage::Finals && !finals.empty()) {
    return finals;
  }
  std::vector<double> screening = samples_of(trial.screening);
  return screening.empty() ? finals : screening;
}

}  // namespace

ReplayTable::ReplayTable(Table table, const std::string& file)
    : file_(file), table_(std::move(table)), digest_(table_digest(table_)) {
  std::set<Digest> classes;
  for (const TableTrial& trial : table_.trials) {
    classes.insert(trial.context.device_class);
    trials_.emplace(name_of(trial.context.kernel, trial.context.problem, trial.context.configuration),
                    &trial);
  }
  if (classes.size() != 1) {
    throw Error(ErrorCode::InvalidArgument, file + " /trials",
                classes.empty()
                    ? "nothing to replay: export the table with all trials and samples"
                    : "trials of " + std::to_string(classes.size()) + " devices: export one device");
  }
  const auto has_samples = [](const TableTrial& trial) { return !pool(trial, Stage::Finals).empty(); };
  if (std::ranges::none_of(table_.trials, has_samples)) {
    throw Error(ErrorCode::InvalidArgument, file + " /trials",
                "have no samples to replay: export the table with --all-trials --samples");
  }
  for (const TableDevice& device : table_.devices) {
    if (device.device_class == *classes.begin()) {
      facts_ = device.facts;
    }
  }
  facts_.set_replay_table(digest_.hex());
  driver_ = table_.trials.front().context.driver;
}

const TableTrial* ReplayTable::find(const std::string& kernel, const Problem& problem,
                                    const Configuration& configuration) const {
  const auto found = trials_.find(name_of(recorded_name(kernel), problem, configuration));
  return found == trials_.end() ? nullptr : found->second;
}

void ReplayTable::require(const std::string& kernel, const Problem& problem) const {
  for (const TableTrial& trial : table_.trials) {
    if (trial.context.kernel == recorded_name(kernel) && trial.context.problem == problem) {
      return;
    }
  }
  throw Error(ErrorCode::FailedPrecondition, file_,
              "the replayed table holds no recording of " + kernel + " at " + to_string(problem) + "; " +
                  recordings_of(kernel));
}

std::vector<std::string> ReplayTable::recorded(std::size_t most) const {
  std::set<std::string> problems;
  for (const TableTrial& trial : table_.trials) {
    problems.insert(trial.context.kernel + " " + to_string(trial.context.problem));
    if (problems.size() > most) {
      return {};
    }
  }
  return {problems.begin(), problems.end()};
}

// "of scale it holds N=1,T=f32; N=2,T=f32 and 7 more", in the table's order.
std::string ReplayTable::recordings_of(const std::string& kernel) const {
  std::vector<std::string> problems, kernels;
  const auto add = [](std::vector<std::string>& names, const std::string& name) {
    if (std::ranges::find(names, name) == names.end()) {
      names.push_back(name);
    }
  };
  for (const TableTrial& trial : table_.trials) {
    add(kernels, trial.context.kernel);
    if (trial.context.kernel == kernel) {
      add(problems, to_string(trial.context.problem));
    }
  }
  if (problems.empty()) {
    return "it holds no trial of that kernel, but of " + join(kernels, ", ");
  }
  const std::size_t more = problems.size() - std::min(problems.size(), kProblemsNamed);
  problems.resize(problems.size() - more);
  return "of " + kernel + " it holds " + join(problems, "; ") +
         (more == 0 ? "" : " and " + std::to_string(more) + " more");
}

double ReplayTable::sample(const TableTrial& trial, const Digest& trial_key, Stage stage,
                           std::uint32_t k) const {
  const std::vector<double> recorded = pool(trial, stage);
  if (recorded.empty()) {
    return 0;
  }
  if (k < recorded.size()) {
    return recorded[k];
  }
  KeyEncoder encoder("replay-sample", 1);
  encoder.field("table", digest_).field("trial", trial_key);
  encoder.field("stage", static_cast<std::int64_t>(stage)).field("k", static_cast<std::int64_t>(k));
  return recorded[Random(encoder.digest()).below(recorded.size())];
}

Conditions ReplayTable::clocks(const TableTrial& trial) {
  Conditions clocks;
  for (const auto* blocks : {&trial.finals, &trial.screening}) {
    for (const SampleBlock& block : *blocks) {
      if (block.conditions().sm_mhz() != 0) {
        clocks.set_sm_mhz(block.conditions().sm_mhz());
        clocks.set_memory_mhz(block.conditions().memory_mhz());
        return clocks;
      }
    }
  }
  return clocks;
}

}  // namespace cubind::worker
