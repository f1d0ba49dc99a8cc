// Tables for property tests: few questions and few values, so that two tables often have rows for the same.
#pragma once

#include <array>
#include <set>

#include "base/random.hpp"
#include "tests/unit/table/example_table.hpp"
#include "tuner/table/table_identity.hpp"

namespace cubind::test {

template <typename Row>
void keep_first(std::vector<Row>& rows) {
  std::set<decltype(identity_of(rows[0]))> seen;
  std::erase_if(rows, [&](const Row& row) { return !seen.insert(identity_of(row)).second; });
}

/// Readable. Rows with one trial key are trials of the same problem.
inline Table random_table(Random& random) {
  static const Table kExample = example_table();
  const auto one_of = [&](auto... values) {
    const std::array choices{values...};
    return choices[random.below(choices.size())];
  };
  const auto text = [&](auto... values) { return std::string(one_of(values...)); };
  Table table;
  for (const std::uint32_t sms : {114u, 132u}) {
    DeviceFacts facts = example_facts();
    facts.set_sm_count(sms);
    facts.set_power_limit_mw(one_of(500000u, 700000u));
    const DeviceClass device = derive_device_class(facts, "facts");
    table.devices.push_back({device.digest, text("gpu", "other"), device.facts});
  }
  const auto context = [&] {
    TableContext result = kExample.records[0].context;
    result.configuration.values[0].value = one_of(64, 128, 256);
    result.kernel = text("scale", "shift");
    result.problem.dims[0].value = one_of(128, 1024);
    result.device_class = table.devices[random.below(2)].device_class;
    result.driver = text("580.82", "580.159.04", "590.10");
    result.toolchain.name = text("nvrtc 13.0", "nvrtc 13.1", "nvrtc 12.8");
    result.artifact = Digest::of(text("cubin a", "cubin b"));
    result.trial = Digest::of(result.kernel + to_string(result.problem) + result.device_class.hex() +
                              driver_branch(result.driver) + to_string(result.configuration));
    return result;
  };
  for (std::uint64_t left = random.below(24); left > 0; --left) {
    TableRecord record = kExample.records[0];
    record.context = context();
    record.interface = Digest::of(text("interface", "interface", "interface", "new interface"));
    record.name_space = text("", "", "", "team");
    record.evidence = one_of(Evidence::Measured, Evidence::Imported);
    record.provisional = random.below(3) == 0;
    record.timing.set_median_us(one_of(2.0, 2.5, 3.0));
    record.timing.set_low_us(2);
    record.timing.set_high_us(3);
    record.timing.set_measured_at(
        text("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.0Z", "2026-01-02T03:04:05.25Z"));
    table.records.push_back(record);
  }
  keep_first(table.records);
  for (std::uint64_t left = random.below(24); left > 0; --left) {
    TableTrial trial = kExample.trials[random.below(2)];
    trial.context = context();
    trial.outcome = one_of(Outcome::Correct, Outcome::Correct, Outcome::WrongResult, Outcome::Timeout);
    trial.finals.resize(random.below(2));
    table.trials.push_back(trial);
  }
  keep_first(table.trials);
  return table;
}

}  // namespace cubind::test
