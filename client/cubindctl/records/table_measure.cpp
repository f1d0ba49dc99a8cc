#include "client/cubindctl/records/table_measure.hpp"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/answers/explanation.hpp"
#include "client/cubindctl/terminal/terminal.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "client/cubindctl/tune/progress.hpp"
#include "client/cubindctl/tune/progress_bar.hpp"
#include "plan/wire.hpp"
#include "tuner/measure/statistics.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::ctl {
namespace {

constexpr std::uint32_t kCheckRounds = 60;
constexpr const char* kCheckNamespace = "table-check";

class Measuring {
 public:
  Measuring(const Table& table, const CommonOptions& common, const StopSignals& interrupt)
      : table_(table), common_(common), interrupt_(interrupt), connection_(resolve_address(common.address)) {
    const v1::ListDevicesReply reply = connection_.list_devices(common.deadline());
    for (const v1::DeviceClass& device : reply.devices()) {
      if (device.offered()) {
        offered_.push_back(device.label());
      }
    }
  }

  MeasuredTable run() {
    MeasuredTable measured;
    for (const TableRecord& record : table_.records) {
      const std::string label = label_of(record);
      if (std::ranges::find(offered_, label) == offered_.end()) {
        ++measured.left_out;
      } else {
        measured.records.push_back(measure(record, label));
      }
    }
    return measured;
  }

 private:
  std::string label_of(const TableRecord& record) const {
    const auto device =
        std::ranges::find(table_.devices, record.context.device_class, &TableDevice::device_class);
    return device == table_.devices.end() ? "" : device->label;
  }

  MeasuredRecord measure(const TableRecord& record, const std::string& label) {
    const TableContext& context = record.context;
    const Policy policy = as_measured_today(parse_policy(context.policy).value_or(Policy()));
    tune(record, policy, label);
    MeasuredRecord measured{context.kernel, context.problem, label, record.timing.median_us(), {}, {}};
    std::optional<double> by_default;
    for (const TableTrial& trial : trials_of(context.kernel, label)) {
      if (trial.context.problem != context.problem || trial.context.policy != to_string(policy) ||
          trial.outcome != Outcome::Correct || trial.finals.size() != kCheckRounds) {
        continue;
      }
      (trial.context.configuration == context.configuration ? measured.now_us : by_default) =
          time_us_of(trial);
    }
    if (measured.now_us && by_default) {
      measured.default_ratio = *by_default / *measured.now_us;
    }
    return measured;
  }

  /// By the rules of the tuner's own finals.
  static double time_us_of(const TableTrial& trial) {
    const MeasureSettings settings;
    return round_location_us(rounds_of(trial, settings),
                             {Digest::of(trial.context.kernel), trial.tick_us, settings});
  }

  /// Measures the record's configuration and the default. A job that fails is printed to stderr.
  void tune(const TableRecord& record, const Policy& policy, const std::string& label) {
    v1::TuneRequest request;
    request.set_kernel(record.context.kernel);
    request.set_namespace_(kCheckNamespace);
    request.mutable_device()->set_label(label);
    to_wire(policy, *request.mutable_policy());
    to_wire(parse_numerics(record.numerics).value_or(Numerics()), *request.mutable_numerics());
    to_wire(record.context.problem, *request.add_problems());
    to_wire(record.context.configuration, *request.add_listed());
    request.set_rounds(kCheckRounds);
    const auto note = [](const v1::TuneEvent& event) {
      if (has_ended(event.job().state()) && event.job().state() != v1::Job::DONE) {
        std::cerr << result_text(event) << "\n";
      }
    };
    connection_.tune(request, note, interrupt_.token(), common_.timeout);
  }

  std::vector<TableTrial> trials_of(const std::string& kernel, const std::string& device) const {
    v1::ExportTableRequest request;
    request.add_kernels(kernel);
    request.set_device(device);
    request.set_all_trials(true);
    request.set_include_samples(true);
    request.set_include_replayed(true);
    return read_table(connection_.export_table(request, common_.deadline()).json(), "the daemon's table")
        .trials;
  }

  const Table& table_;
  const CommonOptions& common_;
  const StopSignals& interrupt_;
  const Connection connection_;
  std::vector<std::string> offered_;
};

std::string verdict_of(const MeasuredRecord& record, const TableCheckOptions& options) {
  return fails(record, options) ? "FAIL" : *record.ratio() > options.warn_ratio ? "warn" : "ok";
}

std::string text_of(const std::optional<double>& number) { return number ? fixed(*number, 2) : "-"; }

}  // namespace

std::optional<double> MeasuredRecord::ratio() const {
  return now_us && recorded_us > 0 ? std::optional(*now_us / recorded_us) : std::nullopt;
}

MeasuredTable measure_table(const Table& table, const CommonOptions& common, const StopSignals& interrupt) {
  return Measuring(table, common, interrupt).run();
}

bool fails(const MeasuredRecord& record, const TableCheckOptions& options) {
  const auto ratio = record.ratio();
  return !ratio || *ratio > options.fail_ratio;
}

bool fails(const MeasuredTable& measured, const TableCheckOptions& options) {
  return (measured.records.empty() && measured.left_out > 0) ||
         std::ranges::any_of(measured.records,
                             [&](const MeasuredRecord& record) { return fails(record, options); });
}

void print(const MeasuredTable& measured, const std::string& file, const TableCheckOptions& options) {
  TextTable table(
      {"KERNEL", "PROBLEM", "??DEVICE", ">TABLE_US", ">NOW_US", ">RATIO", ">?DEFAULT", "VERDICT"});
  for (const MeasuredRecord& record : measured.records) {
    table.add({record.kernel, to_string(record.problem), record.device, fixed(record.recorded_us, 2),
               text_of(record.now_us), text_of(record.ratio()), text_of(record.default_ratio),
               verdict_of(record, options)});
  }
  const std::string prefix = measured.records.empty() ? "" : replay_prefix(measured.records.front().device);
  table.print(std::cout, output_columns(), prefix);
  std::cout << prefix << file << ": " << counted(measured.records.size(), "record") << " measured";
  if (measured.left_out > 0) {
    std::cout << ", " << measured.left_out << " left out: no agent offers their device class";
  }
  std::cout << "\n";
}

OutputJson json_of(const MeasuredTable& measured, const TableCheckOptions& options) {
  const auto known = [](const std::optional<double>& number) {
    return number ? OutputJson(*number) : OutputJson(nullptr);
  };
  OutputJson records = OutputJson::array();
  for (const MeasuredRecord& record : measured.records) {
    records.push_back({{"kernel", record.kernel},
                       {"problem", json_of(record.problem)},
                       {"device", record.device},
                       {"recorded_us", record.recorded_us},
                       {"now_us", known(record.now_us)},
                       {"ratio", known(record.ratio())},
                       {"default_ratio", known(record.default_ratio)},
                       {"verdict", lower_case(verdict_of(record, options))}});
  }
  return {{"records", std::move(records)}, {"left_out", measured.left_out}};
}

}  // namespace cubind::ctl
