#include "client/cubindctl/profile/ncu_csv.hpp"

#include <algorithm>
#include <charconv>
#include <ranges>
#include <regex>
#include <span>

#include "base/error.hpp"
#include "base/text.hpp"
#include "client/cubindctl/tune/csv_reader.hpp"

namespace cubind::ctl {
namespace {

constexpr const char* kTime = "gpu__time_duration.sum";
constexpr const char* kReadBytes = "dram__bytes_read.sum";
constexpr const char* kWriteBytes = "dram__bytes_write.sum";
constexpr const char* kMemoryShare = "dram__throughput.avg.pct_of_peak_sustained_elapsed";
constexpr const char* kSmShare = "sm__throughput.avg.pct_of_peak_sustained_elapsed";
constexpr const char* kOccupancy = "sm__warps_active.avg.pct_of_peak_sustained_active";
constexpr const char* kOccupancyLimit = "sm__maximum_warps_per_active_cycle_pct";
constexpr const char* kTensorShare = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active";
constexpr const char* kRegisters = "launch__registers_per_thread";
constexpr const char* kWaves = "launch__waves_per_multiprocessor";
constexpr std::string_view kBlockLimit = "launch__occupancy_limit_";
constexpr const char* kBlockLimits[] = {"blocks", "registers", "shared_mem", "warps"};
constexpr std::string_view kStallBegin = "smsp__average_warps_issue_stalled_";
constexpr std::string_view kStallEnd = "_per_issue_active.ratio";

// A unit as ncu has named it in its versions, and what it comes to.
struct Unit {
  std::string_view name;
  double factor = 1;
};
constexpr Unit kTimeUnits[] = {{"ns", 1e-3}, {"nsecond", 1e-3}, {"us", 1},  {"usecond", 1},
                               {"ms", 1e3},  {"msecond", 1e3},  {"s", 1e6}, {"second", 1e6}};
constexpr Unit kByteUnits[] = {{"byte", 1}, {"Kbyte", 1e3}, {"Mbyte", 1e6}, {"Gbyte", 1e9}};
constexpr Unit kShareUnits[] = {{"%", 0.01}};

std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// The table alone, from its header on. The other lines are left empty, so that those of the table keep their
// numbers. Empty: there is no table.
std::string table_of(std::string_view text) {
  std::string table;
  bool has_begun = false;
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    has_begun = has_begun || line.starts_with("\"ID\",");
    if (has_begun && !line.starts_with("==")) {
      table += line;
    }
    table += '\n';
  }
  return has_begun ? table : std::string();
}

// What ncu says in its errors and warnings.
std::string complaints(std::string_view text) {
  std::vector<std::string> found;
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    for (const std::string_view begin : {"==ERROR== ", "==WARNING== "}) {
      if (line.starts_with(begin)) {
        found.emplace_back(trimmed(line.substr(begin.size())));
      }
    }
  }
  return join(found, " ");
}

[[noreturn]] void fail_without_launches(std::string_view text, const std::string& file) {
  if (text.find("ERR_NVGPUCTRPERM") != std::string_view::npos) {
    throw Error(ErrorCode::PermissionDenied, file,
                "this user may not read the GPU's counters (ERR_NVGPUCTRPERM): run ncu as root, or in a "
                "container with --cap-add SYS_ADMIN, or have the driver loaded with "
                "NVreg_RestrictProfilingToAdminUsers=0; without any of these no program can profile here");
  }
  if (!text.empty() && text.find("==") == std::string_view::npos) {
    throw Error(
        ErrorCode::InvalidArgument, file,
        "is not what ncu prints: give the file that ncu has written with --csv --page raw --log-file");
  }
  const std::string said = complaints(text);
  throw Error(ErrorCode::FailedPrecondition, file,
              "ncu saw no launch of the kernel" +
                  (said.empty() ? std::string() : " (" + one_line(said) + ")") +
                  ": run the launcher by itself, which says what fails, and end other profilers of the GPU "
                  "(DCGM, nsys)");
}

// "1,234.5", "1234.5" or "1.2345e+03".
std::optional<double> parse_number(const std::string& text) {
  static const std::regex form(R"((\d{1,3}(,\d{3})+|\d+)(\.\d+)?([eE][+-]?\d{1,3})?)");
  if (!std::regex_match(text, form)) {
    return std::nullopt;
  }
  const std::string plain = replaced(text, ",", "");
  double value = 0;
  std::from_chars(plain.data(), plain.data() + plain.size(), value);
  return value;
}

class NcuTable {
 public:
  NcuTable(const std::string& text, const std::string& file) : file_(file), rows_(read_csv(text, file)) {}

  std::vector<ProfiledLaunch> read() {
    if (rows_.size() < 2 || rows_[1].cells.size() != header_.size()) {
      fail(rows_.back().place(), "the units of the columns are missing: run ncu with --page raw");
    }
    std::vector<ProfiledLaunch> launches;
    for (const CsvRow& row : rows_ | std::views::drop(2)) {
      if (row.cells.size() != header_.size()) {
        fail(row.place(), "has " + std::to_string(row.cells.size()) + " cells, the header has " +
                              std::to_string(header_.size()) + " columns: the file is cut off or changed");
      }
      row_ = &row;
      launches.push_back(launch());
    }
    return launches;
  }

 private:
  [[noreturn]] void fail(const std::string& place, const std::string& cause) const {
    throw Error(ErrorCode::InvalidArgument, file_ + " " + place, cause);
  }

  std::string place(std::size_t column) const { return row_->place(column) + " (" + header_[column] + ")"; }

  const std::vector<std::string>& unit_names() const { return rows_[1].cells; }

  std::optional<std::size_t> column(const std::string& name) const {
    const auto found = std::ranges::find(header_, name);
    return found == header_.end() ? std::nullopt : std::optional<std::size_t>(found - header_.begin());
  }

  std::size_t needed(const std::string& name) const {
    const auto found = column(name);
    if (!found) {
      fail(rows_.front().place(), "has no column " + name + ": run ncu as `cubindctl profile` prints it");
    }
    return *found;
  }

  // Absent: ncu does not know it of this launch.
  std::optional<double> value(std::size_t column) const {
    const std::string& cell = row_->cells[column];
    if (cell.empty() || cell == "n/a" || cell == "(!) n/a") {
      return std::nullopt;
    }
    const std::optional<double> number = parse_number(cell);
    if (!number) {
      fail(place(column), quoted(cell) + " is not a number from 0");
    }
    return number;
  }

  std::optional<double> value(std::size_t column, std::span<const Unit> units) const {
    const auto unit = std::ranges::find(units, unit_names()[column], &Unit::name);
    if (unit == units.end()) {
      fail(place(column),
           "the unit " + quoted(unit_names()[column]) + " is not known: run ncu with --print-units base");
    }
    const std::optional<double> number = value(column);
    return number ? std::optional(*number * unit->factor) : std::nullopt;
  }

  double needed(const char* name, std::span<const Unit> units) const {
    const std::size_t at = needed(name);
    const std::optional<double> number = value(at, units);
    if (!number) {
      fail(place(at), "has no value: does this GPU have the counter?");
    }
    return *number;
  }

  std::optional<double> optional(const std::string& name) const {
    const auto at = column(name);
    return at ? value(*at) : std::nullopt;
  }

  std::optional<double> optional_share(const char* name) const {
    const auto at = column(name);
    return at && !unit_names()[*at].empty() ? value(*at, kShareUnits) : std::nullopt;
  }

  ProfiledLaunch launch() const {
    ProfiledLaunch launch;
    launch.entry_symbol = row_->cells[needed("Kernel Name")];
    launch.time_us = needed(kTime, kTimeUnits);
    launch.read_bytes = needed(kReadBytes, kByteUnits);
    launch.write_bytes = needed(kWriteBytes, kByteUnits);
    launch.memory_share = needed(kMemoryShare, kShareUnits);
    launch.sm_share = needed(kSmShare, kShareUnits);
    launch.occupancy = needed(kOccupancy, kShareUnits);
    launch.tensor_share = optional_share(kTensorShare);
    launch.occupancy_limit = optional_share(kOccupancyLimit);
    launch.waves = optional(kWaves);
    launch.registers = optional(kRegisters);
    add_block_limits(launch);
    add_stalls(launch);
    return launch;
  }

  void add_block_limits(ProfiledLaunch& launch) const {
    for (const char* resource : kBlockLimits) {
      if (const auto blocks = optional(std::string(kBlockLimit) + resource)) {
        launch.block_limits.push_back({resource, *blocks});
      }
    }
    std::ranges::stable_sort(launch.block_limits, {}, &BlockLimit::blocks);
  }

  // "selected" is no stall: the warp issues.
  void add_stalls(ProfiledLaunch& launch) const {
    for (std::size_t i = 0; i < header_.size(); ++i) {
      const std::string_view name = header_[i];
      if (!name.starts_with(kStallBegin) || !name.ends_with(kStallEnd)) {
        continue;
      }
      const std::string reason(
          name.substr(kStallBegin.size(), name.size() - kStallBegin.size() - kStallEnd.size()));
      const auto cycles = value(i);
      if (cycles && *cycles > 0 && reason != "selected") {
        launch.stalls.push_back({reason, *cycles});
      }
    }
    std::ranges::stable_sort(launch.stalls, std::ranges::greater(), &Stall::cycles);
  }

  std::string file_;
  const std::vector<CsvRow> rows_;  // the columns, their units, the launches
  const std::vector<std::string>& header_ = rows_.front().cells;
  const CsvRow* row_ = nullptr;
};

}  // namespace

std::vector<std::string> ncu_metrics() {
  std::vector<std::string> metrics = {kTime,      kReadBytes,      kWriteBytes,  kMemoryShare, kSmShare,
                                      kOccupancy, kOccupancyLimit, kTensorShare, kRegisters,   kWaves};
  for (const char* resource : kBlockLimits) {
    metrics.push_back(std::string(kBlockLimit) + resource);
  }
  return metrics;
}

std::vector<ProfiledLaunch> read_ncu_csv(std::string_view text, const std::string& file) {
  const std::string table = table_of(text);
  if (table.empty()) {
    fail_without_launches(text, file);
  }
  std::vector<ProfiledLaunch> launches = NcuTable(table, file).read();
  if (launches.empty()) {
    fail_without_launches(text, file);
  }
  return launches;
}

}  // namespace cubind::ctl
