// Aligned columns for people.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace cubind::ctl {

/// The last column is not padded. A column whose name starts with ">" is aligned to the right.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> columns);

  /// As many cells as there are columns.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.size() == 1; }
  /// Each line begins with `prefix`.
  void print(std::ostream& out, const std::string& prefix = {}) const;

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

/// "24.10", "1.18", "3.9 MiB".
std::string fixed(double value, int digits);
std::string size_text(std::uint64_t bytes);

}  // namespace cubind::ctl
