#include "server/table/table_export.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace cubind {
namespace {

TableRecord to_table(const RecordRow& row) {
  TableRecord record;
  const RecordQuestion& question = row.question;
  record.context = {question.kernel,   question.problem, question.device_class, to_string(question.policy),
                    row.configuration, row.trial,        row.driver.version,    row.architecture,
                    row.cubin,         row.toolchain};
  record.interface = question.interface;
  record.numerics = to_string(question.numerics);
  record.name_space = question.name_space;
  record.evidence = row.evidence;
  record.provisional = row.provisional;
  record.driver_cuda = row.driver.cuda;
  record.timing = row.timing;
  record.verification = row.verification;
  record.over_library = row.over_library;
  return record;
}

// What the samples come to, where they are left out: their median.
void summarize(std::vector<double> samples, TableTrial& trial) {
  if (samples.empty()) {
    return;
  }
  std::ranges::sort(samples);
  const std::size_t middle = samples.size() / 2;
  trial.time_us = samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
  trial.samples = static_cast<std::uint32_t>(samples.size());
}

TableTrial to_table(StoreReader& store, const TrialRow& row, bool samples) {
  TableTrial trial;
  trial.context = {row.kernel,        row.problem,    row.device_class,   to_string(row.policy),
                   row.configuration, row.key.digest, row.driver.version, row.fact.architecture(),
                   row.cubin,         row.toolchain};
  trial.outcome = row.outcome;
  trial.header = row.header();
  trial.measured_as = row.measured_as;
  trial.resources.assign(row.fact.resources().begin(), row.fact.resources().end());
  for (VerificationRow& verification : store.verifications(row)) {
    trial.verifications.push_back(std::move(*verification.mutable_verification()));
  }
  std::vector<double> screened, finals;
  for (BlockRow& stored : store.blocks(row)) {
    SampleBlock& block = *stored.mutable_block();
    trial.timer = block.timer();
    trial.tick_us = block.tick_us();
    const bool is_screening = block.stage() == v1::SampleBlock::SCREEN;
    if (samples) {
      (is_screening ? trial.screening : trial.finals).push_back(std::move(block));
    } else {
      std::ranges::copy(block.samples_us(), std::back_inserter(is_screening ? screened : finals));
    }
  }
  summarize(finals.empty() ? screened : finals, trial);
  return trial;
}

class Export {
 public:
  Export(StoreReader& store, const ExportOptions& options)
      : store_(store), options_(options), classes_(store.device_classes()) {}

  ExportedTable run() {
    const RecordFilter filter{options_.kernels, options_.device_class, options_.name_space, true};
    add_records(store_.records(filter));
    if (options_.all_trials) {
      add_trials(store_.all_trials(filter));
    }
    for (const Digest& device : used_) {
      const DeviceClass& known = classes_.at(device);
      exported_.table.devices.push_back({device, known.label, known.facts});
    }
    return std::move(exported_);
  }

 private:
  bool wanted(const Digest& device_class) {
    const auto found = classes_.find(device_class);
    if (found == classes_.end()) {
      ++exported_.damaged_left_out;
      return false;
    }
    const bool left_out = !options_.replayed && !found->second.facts.replay_table().empty();
    exported_.replayed_left_out += left_out ? 1 : 0;
    return !left_out;
  }

  bool wanted(const RecordRow& row) {
    if (!wanted(row.question.device_class)) {
      return false;
    }
    const bool is_doubtful = row.provisional && !options_.provisional;
    const bool is_foreign = row.evidence == Evidence::Shipped && !options_.shipped;
    exported_.provisional_left_out += is_doubtful && !is_foreign ? 1 : 0;
    exported_.shipped_left_out += is_foreign && !is_doubtful ? 1 : 0;
    return !is_doubtful && !is_foreign;
  }

  // Strongest evidence first, so that a weaker row of the same identity is the one left out.
  void add_records(std::vector<RecordRow> rows) {
    std::ranges::stable_sort(rows, std::ranges::greater{}, &RecordRow::evidence);
    std::set<std::tuple<Digest, std::string, std::uint32_t>> seen;
    for (const RecordRow& row : rows) {
      if (!wanted(row)) {
        continue;
      }
      if (!seen.emplace(row.key, driver_branch(row.driver.version), toolchain_major(row.toolchain)).second) {
        continue;
      }
      used_.insert(row.question.device_class);
      exported_.table.records.push_back(to_table(row));
      winners_.emplace(std::pair(row.trial, row.question.kernel), row.timing);
    }
  }

  void add_trials(std::vector<TrialRow> rows) {
    std::ranges::stable_sort(rows, {}, &TrialRow::origin);  // the store's own first
    std::set<std::pair<Digest, std::string>> seen;
    for (const TrialRow& row : rows) {
      if (row.outcome == Outcome::OutOfMemory || !wanted(row.device_class)) {
        continue;
      }
      if (!seen.emplace(row.key.digest, row.kernel).second) {
        continue;
      }
      used_.insert(row.device_class);
      TableTrial& trial = exported_.table.trials.emplace_back(to_table(store_, row, options_.samples));
      const auto winner = winners_.find({row.key.digest, row.kernel});
      if (winner != winners_.end() && trial.time_us > 0) {
        trial.time_us = winner->second.median_us();
        trial.samples = winner->second.samples();
      }
    }
  }

  StoreReader& store_;
  const ExportOptions& options_;
  std::map<Digest, DeviceClass> classes_;
  std::set<Digest> used_;
  std::map<std::pair<Digest, std::string>, Timing> winners_;  // by trial and kernel
  ExportedTable exported_;
};

}  // namespace

ExportedTable export_table(StoreReader& store, const ExportOptions& options) {
  return Export(store, options).run();
}

}  // namespace cubind
