#include "client/cubindctl/text_table.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "base/error.hpp"
#include "client/cubindctl/text_wrap.hpp"

namespace cubind::ctl {
namespace {

const std::string kGap = "  ";

}  // namespace

TextTable::TextTable(std::vector<std::string> columns) {
  for (std::string& column : columns) {
    right_.push_back(column.starts_with(">"));
    if (right_.back()) {
      column.erase(0, 1);
    }
  }
  rows_.push_back(std::move(columns));
}

void TextTable::add(std::vector<std::string> cells) {
  if (cells.size() != right_.size()) {
    throw Error(ErrorCode::Internal, "table", "a row has another number of cells than the head");
  }
  rows_.push_back(std::move(cells));
}

std::vector<std::size_t> TextTable::widths() const {
  std::vector<std::size_t> widths(right_.size(), 0);
  for (const Row& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  return widths;
}

void TextTable::print(std::ostream& out, std::size_t columns, const std::string& prefix) const {
  const std::vector<std::size_t> widths = this->widths();
  std::size_t before = prefix.size();  // the last column
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    before += widths[i] + kGap.size();
  }
  const bool fits = columns == 0 || before + widths.back() <= columns;
  if (!fits && !empty() && columns < before + std::max(columns / 3, rows_.front().back().size())) {
    print_blocks(out, columns, prefix);
    return;
  }
  for (const Row& row : rows_) {
    print_row(out, row, widths, fits ? 0 : columns - before, prefix);
  }
}

// `columns`: of the last cell; 0: it is not broken.
void TextTable::print_row(std::ostream& out, const Row& row, const std::vector<std::size_t>& widths,
                          std::size_t columns, const std::string& prefix) const {
  std::string line = prefix;
  for (std::size_t i = 0; i + 1 < row.size(); ++i) {
    const std::string padding(widths[i] - row[i].size(), ' ');
    line.append(right_[i] ? padding : row[i]).append(right_[i] ? row[i] : padding).append(kGap);
  }
  const std::string padding(right_.back() ? widths.back() - row.back().size() : 0, ' ');
  const std::string under = prefix + std::string(line.size() - prefix.size(), ' ');
  out << line << padding << wrapped_under(row.back(), columns, under) << "\n";
}

void TextTable::print_blocks(std::ostream& out, std::size_t columns, const std::string& prefix) const {
  const Row& names = rows_.front();
  const std::size_t name_width = std::ranges::max(names, {}, &std::string::size).size() + kGap.size();
  const std::string under = prefix + std::string(name_width, ' ');
  const std::size_t room = columns > under.size() + 1 ? columns - under.size() : 1;
  for (std::size_t row = 1; row < rows_.size(); ++row) {
    out << (row == 1 ? "" : "\n");
    for (std::size_t i = 0; i < names.size(); ++i) {
      out << prefix << names[i] << std::string(name_width - names[i].size(), ' ')
          << wrapped_under(rows_[row][i], room, under) << "\n";
    }
  }
}

std::string fixed(double value, int digits) {
  std::array<char, 64> text{};
  const int length = std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return {text.data(), static_cast<std::size_t>(length)};
}

std::string percent(double share, int digits) { return fixed(100 * share, digits) + " %"; }

std::string size_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 4> kUnits = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) {
    return std::to_string(bytes) + " B";
  }
  double size = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (size >= 1024 && unit + 1 < kUnits.size()) {
    size /= 1024;
    ++unit;
  }
  return fixed(size, 1) + " " + kUnits[unit];
}

}  // namespace cubind::ctl
