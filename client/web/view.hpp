// A page as data: a question, what answers it, and the command that prints the same.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "client/web/http_server.hpp"

namespace cubind::web {

struct Cell {
  std::string text;                   // between backticks: code
  std::optional<double> number = {};  // what sorts, in place of the text
  std::string link = {};              // address of a page; empty: none
  std::optional<double> share = {};   // 0 to 1, drawn as a bar
};

struct Column {
  std::string name;
  bool is_number = false;
};

using Row = std::vector<Cell>;

/// A column whose cells are all empty or "-" is left out.
struct Grid {
  std::vector<Column> columns;
  std::vector<Row> rows;
  std::string none;       // what is said instead of an empty table
  bool is_asked = false;  // the address's query sorts, filters and pages it: one table of a page
  /// Of an asked table with many rows, in place of `rows`: the cells are made of what is shown alone.
  std::size_t count = 0;
  std::function<Cell(std::size_t row, std::size_t column)> cell_of = {};
  std::function<const std::string&(std::size_t row)> text_of = {};  // of all its cells, in lower case
  std::vector<std::size_t> told = {};  // the columns that are not left out; empty: they are looked for
};

/// The columns that have a value in some row.
std::vector<std::size_t> told_columns(const Grid& table);

struct Heading {
  std::string text;
};

/// Sentences; text between backticks is code.
struct Sentence {
  std::string text;
  std::string link = {};  // the address of a page; empty: none
};

using Block = std::variant<Heading, Sentence, Grid>;

struct View {
  std::string question;  // the title
  std::string command;   // prints the same numbers; empty: none does
  std::vector<Block> blocks;
  bool is_live = true;  // a script reads it again every two seconds
};

/// How many rows of the asked table a page shows.
inline constexpr std::size_t kRowsOfPage = 100;

/// The page's content. `request` has the address that sorting, filtering and paging lead from: `sort` (a
/// column's number), `down`, `words`, `page`. Works without scripts.
std::string html_of(const View& view, const Request& request);
/// Text in which no tag and no attribute's end can begin.
std::string escaped(const std::string& text);

}  // namespace cubind::web
