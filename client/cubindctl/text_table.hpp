// Aligned columns for people.
//
// A terminal that is too narrow for the rows gets them with the last column broken into lines of its own, or,
// if that would leave less than a third of the width for it, each row as a block of lines: NAME value.
#pragma once

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

namespace cubind::ctl {

/// The last column is not padded. A column whose name starts with ">" is aligned to the right.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> columns);

  /// Adds a row with one cell per column.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.size() == 1; }
  /// Each line begins with `prefix`. `columns`: of the terminal, output_columns(); 0: there is none, and no
  /// line is broken.
  void print(std::ostream& out, std::size_t columns, const std::string& prefix = {}) const;

 private:
  using Row = std::vector<std::string>;

  std::vector<std::size_t> widths() const;
  void print_row(std::ostream& out, const Row& row, const std::vector<std::size_t>& widths,
                 std::size_t columns, const std::string& prefix) const;
  void print_blocks(std::ostream& out, std::size_t columns, const std::string& prefix) const;

  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

/// "24.10", "1.18", "12.5 %" of a share, "3.9 MiB".
std::string fixed(double value, int digits);
std::string percent(double share, int digits);
std::string size_text(std::uint64_t bytes);

}  // namespace cubind::ctl
