#include "client/web/record_columns.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "client/cubindctl/answers/comparison_output.hpp"
#include "client/cubindctl/answers/own_terms.hpp"
#include "client/cubindctl/terminal/json_output.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "client/web/terms.hpp"
#include "plan/answer_wire.hpp"
#include "plan/wire.hpp"

namespace cubind::web {
namespace {

// Over the library that it was compared with last.
Cell library_gain(const v1::ListedRecord& record) {
  if (record.provenance().over_library().empty()) {
    return {"-"};
  }
  const v1::LibraryComparison& last = *record.provenance().over_library().rbegin();
  return {ctl::fixed(last.gain(), 2) + " (" + ctl::fixed(last.gain_low(), 2) + " to " +
              ctl::fixed(last.gain_high(), 2) + ") " + last.library(),
          last.gain()};
}

Cell default_gain(const v1::ListedRecord& record) {
  const auto gain = ctl::over_default(record.provenance().timing());
  return gain ? number_cell(*gain, 2) : Cell{"-"};
}

Cell interval_width(const v1::ListedRecord& record) {
  const v1::Timing& timing = record.provenance().timing();
  const double width = (timing.high_us() - timing.low_us()) / std::max(1e-9, timing.median_us());
  return {ctl::fixed(100 * width, 2) + " %", width};
}

}  // namespace

const std::vector<RecordColumn>& record_columns() {
  static const std::vector<RecordColumn> kColumns{
      {{"kernel"}, [](const auto& one) { return kernel_cell(one.kernel()); }},
      {{"problem"}, [](const auto& one) { return Cell{problem_text(one.provenance().measured_problem())}; }},
      {{"time, µs", true},
       [](const auto& one) { return number_cell(one.provenance().timing().median_us(), 2); }},
      {{"times as fast as the default", true}, default_gain},
      {{"times as fast as the library", true}, library_gain},
      {{"evidence"},
       [](const auto& one) {
         const std::string marks = ctl::marks_of(one);
         return Cell{std::string(to_string(evidence_from_wire(one.provenance().evidence(), "evidence"))) +
                     (marks.empty() ? "" : ", " + marks)};
       }},
      {{"measured"},
       [](const auto& one) { return Cell{one.provenance().timing().measured_at().substr(0, 10)}; }},
      {{"device"}, [](const auto& one) { return Cell{one.provenance().measured_device()}; }},
      {{"width of the time's 95 % interval", true}, interval_width},
      {{"toolchain"}, [](const auto& one) { return Cell{one.provenance().toolchain()}; }},
      {{"winner"}, [](const auto& one) { return Cell{ctl::configuration_text(one)}; }}};
  return kColumns;
}

Grid records_table(const Records& records) {
  Grid table;
  table.is_asked = true;
  table.count = records.list->size();
  table.cell_of = [list = records.list](std::size_t row, std::size_t column) {
    return record_columns()[column].cell_of((*list)[row]);
  };
  table.text_of = [texts = records.texts](std::size_t row) -> const std::string& { return (*texts)[row]; };
  table.told = records.told;
  std::ranges::transform(record_columns(), std::back_inserter(table.columns), &RecordColumn::column);
  return table;
}

std::string text_of(const v1::ListedRecord& record) {
  std::string text;
  for (const RecordColumn& column : record_columns()) {
    text += column.cell_of(record).text + " ";
  }
  return ctl::lower_case(std::move(text));
}

}  // namespace cubind::web
