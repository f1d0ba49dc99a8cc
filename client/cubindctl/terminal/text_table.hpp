// Aligned columns for people.
//
// A terminal that is too narrow for the rows gets them with the last column broken into lines of its own. If
// that would leave less than a third of the width for it, columns that can be spared are left out. If that
// does not help, the last cell stands beneath its row, and if even the others do not fit, each row is a block
// of lines: NAME value.
#pragma once

#include <cstddef>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace cubind::ctl {

/// The last column is not padded. What stands before a column's name says how it is shown: ">" aligns it to
/// the right; "?" lets a narrow terminal leave it out, "??" before those with "?", at equality the rightmost
/// one first. The last column is never left out.
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
  using Columns = std::vector<std::size_t>;  // their numbers, the last one included

  std::vector<std::size_t> widths() const;
  /// The columns that are left when it fits, or when no more can be spared.
  Columns without_spare(const std::function<bool(const Columns&)>& fits) const;
  void print_rows(std::ostream& out, const Columns& shown, const std::vector<std::size_t>& widths,
                  const std::string& prefix, std::size_t room, bool beneath) const;
  void tell_left_out(std::ostream& out, const Columns& shown, const std::string& prefix) const;
  void print_blocks(std::ostream& out, std::size_t columns, const std::string& prefix) const;

  std::vector<bool> right_;
  std::vector<std::size_t> spare_;  // how soon it is left out; 0: never
  std::vector<std::vector<std::string>> rows_;
};

/// "24.10", "1.18", "12.5 %" of a share, "3.9 MiB".
std::string fixed(double value, int digits);
std::string percent(double share, int digits);
std::string size_text(std::uint64_t bytes);

}  // namespace cubind::ctl
