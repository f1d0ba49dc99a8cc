#include "client/cubindctl/shape_csv.hpp"

#include <algorithm>

#include "base/identifier.hpp"
#include "base/text.hpp"
#include "client/cubindctl/csv_reader.hpp"
#include "client/cubindctl/shape_collector.hpp"
#include "schemas/limits.hpp"

namespace cubind::ctl {
namespace {

using Row = CsvReader::Row;

class ShapeCsv {
 public:
  ShapeCsv(std::string_view text, const std::string& file) : shapes_(file), csv_(text, file) {}

  ShapeList read() {
    if (!csv_.next(header_)) {
      shapes_.fail("", "must not be empty: the first line names the columns, as in N,D,T");
    }
    check_header();
    for (Row row; csv_.next(row);) {
      add(row);
    }
    return shapes_.finish("below line 1");
  }

 private:
  std::string place(std::size_t column) const {
    return csv_.place(column) + (header_[column].empty() ? "" : " (" + header_[column] + ")");
  }

  void check_header() const {
    for (std::size_t column = 0; column < header_.size(); ++column) {
      const std::string& name = header_[column];
      if (name.find(';') != std::string::npos || name.find('\t') != std::string::npos) {
        shapes_.fail(csv_.place(), "the columns are separated by commas, as in N,D,T");
      }
      if (!is_identifier(name)) {
        shapes_.fail(place(column),
                     quoted(name) + " is not a name: the first line names the columns, as in N,D,T");
      }
      if (std::ranges::find(header_, name) != header_.begin() + static_cast<std::ptrdiff_t>(column)) {
        shapes_.fail(place(column), "the name stands twice in the header");
      }
    }
  }

  void add(const Row& row) {
    if (row.size() != header_.size()) {
      shapes_.fail(csv_.place(), "has " + std::to_string(row.size()) + " cells, the header has " +
                                     std::to_string(header_.size()) + " columns");
    }
    Problem problem;
    std::string kernel;
    for (std::size_t column = 0; column < row.size(); ++column) {
      if (header_[column] != "kernel") {
        put(problem, column, row[column]);
      } else if (row[column].empty()) {
        shapes_.fail(place(column), "must not be empty");
      } else {
        kernel = row[column];
      }
    }
    shapes_.add(std::move(problem), kernel, csv_.place());
  }

  void put(Problem& problem, std::size_t column, const std::string& cell) const {
    if (cell.empty()) {
      shapes_.fail(place(column), "is empty: give an integer, a type, or true or false");
    }
    if (!put_value(problem, header_[column], cell)) {
      shapes_.fail(place(column), quoted(cell) + " is neither an integer, a type, nor true or false" +
                                      dtype_suggestion(cell));
    }
    const auto dim = problem.dim(header_[column]);
    if (dim && (*dim < 0 || *dim > kMaxDim)) {
      shapes_.fail(place(column), cell + (*dim < 0 ? " is below 0" : " is above 2^48"));
    }
  }

  ShapeCollector shapes_;
  CsvReader csv_;
  Row header_;
};

}  // namespace

ShapeList read_shape_csv(std::string_view text, const std::string& file) {
  return ShapeCsv(text, file).read();
}

}  // namespace cubind::ctl
