#include "client/cubindctl/text_table.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "base/error.hpp"

namespace cubind::ctl {

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

void TextTable::print(std::ostream& out, const std::string& prefix) const {
  std::vector<std::size_t> widths(right_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  for (const auto& row : rows_) {
    out << prefix;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      const bool last = i + 1 == row.size();
      out << (right_[i] ? padding + row[i] : last ? row[i] : row[i] + padding) << (last ? "\n" : "  ");
    }
  }
}

std::string fixed(double value, int digits) {
  std::array<char, 64> text{};
  const int length = std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return {text.data(), static_cast<std::size_t>(length)};
}

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
