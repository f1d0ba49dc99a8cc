#include "client/cubindctl/shape_csv.hpp"

#include <algorithm>

#include "base/identifier.hpp"
#include "base/text.hpp"
#include "client/cubindctl/shape_collector.hpp"
#include "schemas/limits.hpp"

namespace cubind::ctl {
namespace {

using Row = std::vector<std::string>;

std::string line_place(std::size_t line) { return "line " + std::to_string(line); }

// Cells of one row after the other. A quoted cell may hold commas, line ends and, doubled, quotes.
class CsvReader {
 public:
  CsvReader(std::string_view text, const ShapeCollector& shapes) : text_(text), shapes_(shapes) {
    if (text_.starts_with("\xef\xbb\xbf")) {
      text_.remove_prefix(3);  // spreadsheets write it
    }
  }

  std::size_t line() const { return line_; }  // where the last row begins

  /// False: there is no more.
  bool next(Row& row) {
    while (!text_.empty()) {
      line_ = next_line_;
      row.clear();
      read_row(row);
      if (row.size() > 1 || !row.front().empty()) {
        return true;
      }
    }
    return false;
  }

 private:
  void read_row(Row& row) {
    do {
      row.push_back(read_cell(row.size() + 1));
    } while (take(','));
    take('\r');
    if (take('\n')) {
      ++next_line_;
    }
  }

  std::string read_cell(std::size_t column) {
    skip_spaces();
    std::string cell = text_.starts_with('"') ? read_quoted(column) : read_plain(column);
    skip_spaces();
    if (!text_.empty() && std::string_view(",\r\n").find(text_.front()) == std::string_view::npos) {
      fail(column, "text follows the closing quote: a quote within a cell is doubled");
    }
    return cell;
  }

  std::string read_plain(std::size_t column) {
    const std::size_t end = std::min(text_.find_first_of(",\r\n"), text_.size());
    std::string cell(text_.substr(0, end));
    text_.remove_prefix(end);
    if (cell.find('"') != std::string::npos) {
      fail(column, "a quote stands within the cell " + quoted(cell) +
                       ": quote the whole cell, and double the quotes in it");
    }
    cell.erase(cell.find_last_not_of(" \t") + 1);
    return cell;
  }

  std::string read_quoted(std::size_t column) {
    std::string cell;
    take('"');
    for (;;) {
      const std::size_t end = text_.find('"');
      if (end == std::string_view::npos) {
        fail(column, "the quoted cell does not end");
      }
      cell += text_.substr(0, end);
      text_.remove_prefix(end + 1);
      if (!take('"')) {
        break;
      }
      cell += '"';
    }
    next_line_ += static_cast<std::size_t>(std::ranges::count(cell, '\n'));
    return cell;
  }

  void skip_spaces() { text_.remove_prefix(std::min(text_.find_first_not_of(" \t"), text_.size())); }

  bool take(char expected) {
    if (!text_.starts_with(expected)) {
      return false;
    }
    text_.remove_prefix(1);
    return true;
  }

  [[noreturn]] void fail(std::size_t column, std::string cause) const {
    shapes_.fail(line_place(line_) + ", column " + std::to_string(column), std::move(cause));
  }

  std::string_view text_;
  const ShapeCollector& shapes_;
  std::size_t line_ = 1, next_line_ = 1;
};

class ShapeCsv {
 public:
  ShapeCsv(std::string_view text, const std::string& file) : shapes_(file), csv_(text, shapes_) {}

  ShapeList read() {
    if (!csv_.next(header_)) {
      shapes_.fail("", "must not be empty: the first line names the columns, as in N,D,T");
    }
    check_header();
    for (Row row; csv_.next(row);) {
      add(row);
    }
    return shapes_.finish("below " + line_place(1));
  }

 private:
  std::string place(std::size_t column) const {
    return line_place(csv_.line()) + ", column " + std::to_string(column + 1) +
           (header_[column].empty() ? "" : " (" + header_[column] + ")");
  }

  void check_header() const {
    for (std::size_t column = 0; column < header_.size(); ++column) {
      const std::string& name = header_[column];
      if (name.find(';') != std::string::npos || name.find('\t') != std::string::npos) {
        shapes_.fail(line_place(csv_.line()), "the columns are separated by commas, as in N,D,T");
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
      shapes_.fail(line_place(csv_.line()), "has " + std::to_string(row.size()) + " cells, the header has " +
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
    shapes_.add(std::move(problem), kernel, line_place(csv_.line()));
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
