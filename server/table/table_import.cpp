#include "server/table/table_import.hpp"

#include <map>

#include "tuner/table/table_parts.hpp"

namespace cubind {
namespace {

std::string location_of(const std::string& file, std::string_view list, std::size_t index) {
  return file + " /" + std::string(list) + "/" + std::to_string(index);
}

TrialRow to_row(const TableTrial& trial, const Policy& policy) {
  TrialRow row;
  const TableContext& context = trial.context;
  row.key.digest = context.trial;
  row.origin = Origin::Import;
  row.kernel = context.kernel;
  row.problem = context.problem;
  row.configuration = context.configuration;
  row.device_class = context.device_class;
  row.policy = policy;
  row.driver.version = context.driver;
  row.outcome = trial.outcome;
  row.header() = trial.header;
  row.measured_as = trial.measured_as;
  row.toolchain = context.toolchain;
  row.cubin = context.artifact;
  row.fact.set_architecture(context.architecture);
  row.fact.mutable_resources()->Assign(trial.resources.begin(), trial.resources.end());
  return row;
}

class Import {
 public:
  Import(StoreWriter& store, const Table& table, const std::string& file, const ImportOptions& options,
         const Interrupt& interrupt)
      : store_(store), table_(table), file_(file), options_(options), interrupt_(interrupt) {}

  ImportReport run() {
    for (const TableDevice& device : table_.devices) {
      const DeviceClass known = derive_device_class(device.facts, file_ + " /devices");
      replayed_[known.digest] = !device.facts.replay_table().empty();
      store_.put_device_class(known);
    }
    for (std::size_t i = 0; i < table_.records.size(); ++i) {
      add_record(i);
    }
    for (std::size_t i = 0; i < table_.trials.size(); ++i) {
      add_trial(i);
    }
    return report_;
  }

 private:
  void add_record(std::size_t index) {
    ask(interrupt_);
    RecordRow row = record_row(table_.records[index], location_of(file_, "records", index));
    if (replayed_[row.question.device_class]) {
      row.evidence = Evidence::Replayed;
    } else if (row.evidence != Evidence::Shipped) {
      row.evidence = Evidence::Imported;
    }
    if (!options_.name_space.empty()) {
      row.question.name_space = options_.name_space;
      row.key = record_key(row.question).digest;
    }
    const bool added = options_.only_new ? store_.put_new_record(row) : store_.put_record(row);
    ++(added ? report_.records_added : report_.records_known);
  }

  void add_trial(std::size_t index) {
    ask(interrupt_);
    const TableTrial& trial = table_.trials[index];
    const TrialRow row = to_row(
        trial, policy_from_table(trial.context.policy, location_of(file_, "trials", index) + "/policy"));
    if (!store_.put_trial(row)) {
      return;
    }
    ++report_.trials_added;
    if (trial.measured_as) {
      return;  // its results are that trial's
    }
    add_blocks(trial, trial.screening, v1::SampleBlock::SCREEN);
    add_blocks(trial, trial.finals, v1::SampleBlock::FINAL);
    for (const VerificationResult& result : trial.verifications) {
      VerificationRow verification;
      verification.set_imported(true);
      *verification.mutable_verification() = result;
      verification.mutable_verification()->set_trial_key(bytes_of(row.key.digest));
      verification.mutable_verification()->set_verification_digest(bytes_of(Digest()));
      store_.put_verification(verification);
    }
  }

  void add_blocks(const TableTrial& trial, const std::vector<SampleBlock>& blocks,
                  v1::SampleBlock::Stage stage) {
    for (std::uint32_t index = 0; index < blocks.size(); ++index) {
      BlockRow row;
      row.set_imported(true);
      SampleBlock& block = *row.mutable_block() = blocks[index];
      block.set_trial_key(bytes_of(trial.context.trial));
      block.set_stage(stage);
      block.set_index(index);
      block.set_timer(trial.timer);
      block.set_tick_us(trial.tick_us);
      store_.put_block(row);
    }
  }

  StoreWriter& store_;
  const Table& table_;
  const std::string& file_;
  const ImportOptions& options_;
  const Interrupt& interrupt_;
  std::map<Digest, bool> replayed_;
  ImportReport report_;
};

}  // namespace

RecordRow record_row(const TableRecord& record, const std::string& where) {
  const TableContext& context = record.context;
  RecordRow row;
  row.question = {context.kernel,
                  record.interface,
                  context.problem,
                  context.device_class,
                  policy_from_table(context.policy, where + "/policy"),
                  numerics_from_table(record.numerics, where + "/numerics"),
                  record.name_space};
  row.key = record_key(row.question).digest;
  row.configuration = context.configuration;
  row.trial = context.trial;
  row.cubin = context.artifact;
  row.architecture = context.architecture;
  row.toolchain = context.toolchain;
  row.driver = {record.driver_cuda, context.driver};
  row.evidence = record.evidence;
  row.provisional = record.provisional;
  row.timing = record.timing;
  row.verification = record.verification;
  row.over_library = record.over_library;
  return row;
}

void put_own_records(StoreWriter& store, const Table& table, const std::string& file) {
  for (const TableDevice& device : table.devices) {
    store.put_device_class(derive_device_class(device.facts, file + " /devices"));
  }
  for (std::size_t i = 0; i < table.records.size(); ++i) {
    store.put_record(record_row(table.records[i], location_of(file, "records", i)));
  }
}

ImportReport import_table(StoreWriter& store, const Table& table, const std::string& file,
                          const ImportOptions& options, const Interrupt& interrupt) {
  return Import(store, table, file, options, interrupt).run();
}

}  // namespace cubind
