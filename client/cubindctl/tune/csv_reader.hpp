// Rows of comma-separated values.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cubind::ctl {

struct CsvRow {
  std::size_t line = 1;  // where it begins
  std::vector<std::string> cells;

  /// "line 4".
  std::string where() const;
  /// "line 4, column 2", counted from 1, of a cell counted from 0.
  std::string where(std::size_t cell) const;
};

/// The rows of the text; lines without text are skipped. A quoted cell may hold commas, line ends and,
/// doubled, quotes. Throws Error(InvalidArgument) at "FILE line 4, column 2".
std::vector<CsvRow> read_csv(std::string_view text, const std::string& file);

}  // namespace cubind::ctl
