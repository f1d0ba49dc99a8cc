#include "client/cubindctl/table_measure.hpp"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "client/cubindctl/long_measurement.hpp"
#include "client/cubindctl/progress_bar.hpp"
#include "client/cubindctl/terminal.hpp"
#include "client/cubindctl/text_table.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::ctl {
namespace {

constexpr std::uint32_t kCheckRounds = 60;
constexpr const char* kCheckNamespace = "table-check";

class Measuring {
 public:
  Measuring(const Table& table, const CommonOptions& common, const StopSignals& interrupt)
      : table_(table), measurement_(common, interrupt) {
    const v1::ListDevicesReply reply = measurement_.connection().list_devices(common.deadline());
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
    v1::TuneRequest like;
    like.set_kernel(context.kernel);
    like.set_namespace_(kCheckNamespace);
    like.mutable_device()->set_label(label);
    to_wire(policy, *like.mutable_policy());
    to_wire(parse_numerics(record.numerics).value_or(Numerics()), *like.mutable_numerics());
    const RepeatedProblem problem{
        context.kernel, context.problem, to_string(policy), label, {context.configuration}};
    MeasuredRecord measured{context.kernel, context.problem, label, record.timing.median_us, {}, {}};
    measurement_.measure(like, problem, {context.configuration}, kCheckRounds);
    std::optional<double> by_default;
    for (const JudgedConfiguration& one :
         judge(problem, measurement_.trials_of(context.kernel, label), kCheckRounds)) {
      if (one.configuration == context.configuration) {
        measured.now_us = one.time_us;
      } else {
        by_default = one.time_us;
      }
    }
    if (measured.now_us && by_default) {
      measured.default_ratio = *by_default / *measured.now_us;
    }
    return measured;
  }

  const Table& table_;
  LongMeasurement measurement_;
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
