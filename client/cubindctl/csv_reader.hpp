// Rows of comma-separated values.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cubind::ctl {

/// Cells of one row after the other; lines without text are skipped. A quoted cell may hold commas, line ends
/// and, doubled, quotes. Throws Error(InvalidArgument) at "FILE line 4, column 2". The text must outlive it.
class CsvReader {
 public:
  using Row = std::vector<std::string>;

  CsvReader(std::string_view text, std::string file);

  /// False: there is no more.
  bool next(Row& row);
  /// "line 4": where the last row begins.
  std::string place() const;
  /// "line 4, column 2", counted from 1, of a cell of the last row, counted from 0.
  std::string place(std::size_t cell) const;

 private:
  void read_row(Row& row);
  std::string read_cell(std::size_t cell);
  std::string read_plain(std::size_t cell);
  std::string read_quoted(std::size_t cell);
  void skip_spaces();
  bool take(char expected);
  [[noreturn]] void fail(std::size_t cell, const std::string& cause) const;

  std::string_view text_;
  std::string file_;
  std::size_t line_ = 1, next_line_ = 1;
};

}  // namespace cubind::ctl
