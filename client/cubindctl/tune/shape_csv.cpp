#include "client/cubindctl/tune/shape_csv.hpp"

#include <algorithm>
#include <ranges>

#include "base/identifier.hpp"
#include "base/text.hpp"
#include "client/cubindctl/tune/csv_reader.hpp"
#include "client/cubindctl/tune/shape_collector.hpp"
#include "schemas/limits.hpp"

namespace cubind::ctl {
namespace {

class ShapeCsv {
 public:
  ShapeCsv(std::string_view text, const std::string& file) : shapes_(file), rows_(read_csv(text, file)) {}

  ShapeList read() {
    if (rows_.empty()) {
      shapes_.fail("", "must not be empty: the first line names the columns, as in N,D,T");
    }
    check_header();
    for (const CsvRow& row : rows_ | std::views::drop(1)) {
      add(row);
    }
    return shapes_.finish("below line 1");
  }

 private:
  const std::vector<std::string>& names() const { return rows_.front().cells; }

  std::string where(const CsvRow& row, std::size_t column) const {
    return row.where(column) + (names()[column].empty() ? "" : " (" + names()[column] + ")");
  }

  void check_header() const {
    const CsvRow& header = rows_.front();
    for (std::size_t column = 0; column < names().size(); ++column) {
      const std::string& name = names()[column];
      if (name.find(';') != std::string::npos || name.find('\t') != std::string::npos) {
        shapes_.fail(header.where(), "the columns are separated by commas, as in N,D,T");
      }
      if (!is_identifier(name)) {
        shapes_.fail(where(header, column),
                     quoted(name) + " is not a name: the first line names the columns, as in N,D,T");
      }
      if (std::ranges::find(names(), name) != names().begin() + static_cast<std::ptrdiff_t>(column)) {
        shapes_.fail(where(header, column), "the name stands twice in the header");
      }
    }
  }

  void add(const CsvRow& row) {
    if (row.cells.size() != names().size()) {
      shapes_.fail(row.where(), "has " + std::to_string(row.cells.size()) + " cells, the header has " +
                                    std::to_string(names().size()) + " columns");
    }
    Problem problem;
    std::string kernel;
    for (std::size_t column = 0; column < names().size(); ++column) {
      if (names()[column] != "kernel") {
        put(problem, row, column);
      } else if (row.cells[column].empty()) {
        shapes_.fail(where(row, column), "must not be empty");
      } else {
        kernel = row.cells[column];
      }
    }
    shapes_.add(std::move(problem), kernel, row.where());
  }

  void put(Problem& problem, const CsvRow& row, std::size_t column) const {
    const std::string& cell = row.cells[column];
    if (cell.empty()) {
      shapes_.fail(where(row, column), "is empty: give an integer, a type, or true or false");
    }
    if (!put_value(problem, names()[column], cell)) {
      shapes_.fail(where(row, column), quoted(cell) + " is neither an integer, a type, nor true or false" +
                                           dtype_suggestion(cell));
    }
    const auto dim = problem.dim(names()[column]);
    if (dim && (*dim < 0 || *dim > kMaxDim)) {
      shapes_.fail(where(row, column), cell + (*dim < 0 ? " is below 0" : " is above 2^48"));
    }
  }

  ShapeCollector shapes_;
  const std::vector<CsvRow> rows_;
};

}  // namespace

ShapeList read_shape_csv(std::string_view text, const std::string& file) {
  return ShapeCsv(text, file).read();
}

}  // namespace cubind::ctl
