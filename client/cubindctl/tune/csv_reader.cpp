#include "client/cubindctl/tune/csv_reader.hpp"

#include <csv.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace cubind::ctl {
namespace {

struct Rows {
  std::vector<CsvRow> whole;
  CsvRow current;
  std::size_t line = 1;
};

void add_cell(void* cell, std::size_t size, void* to) {
  Rows& rows = *static_cast<Rows*>(to);
  const std::string& text = rows.current.cells.emplace_back(static_cast<const char*>(cell), size);
  rows.line += static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

/// `end`: the byte that ends the line; -1 at the end of the text.
void end_line(int end, void* to) {
  Rows& rows = *static_cast<Rows*>(to);
  rows.line += end == '\n' ? 1 : 0;
  if (!rows.current.cells.empty()) {
    rows.whole.push_back(std::exchange(rows.current, {}));
  }
  rows.current.line = rows.line;
}

}  // namespace

std::string CsvRow::where() const { return "line " + std::to_string(line); }

std::string CsvRow::where(std::size_t cell) const { return where() + ", column " + std::to_string(cell + 1); }

std::vector<CsvRow> read_csv(std::string_view text, const std::string& file) {
  if (text.starts_with("\xef\xbb\xbf")) {
    text.remove_prefix(3);  // spreadsheets write it
  }
  Rows rows;
  csv_parser parser;
  csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI | CSV_REPALL_NL);
  const bool is_read = csv_parse(&parser, text.data(), text.size(), add_cell, end_line, &rows) == text.size();
  const bool is_whole = is_read && csv_fini(&parser, add_cell, end_line, &rows) == 0;
  csv_free(&parser);
  if (!is_whole) {
    throw Error(ErrorCode::InvalidArgument, file + " " + rows.current.where(rows.current.cells.size()),
                is_read ? "the quoted cell does not end"
                        : "text stands next to a quote: quote the whole cell, and double the quotes in it");
  }
  return std::move(rows.whole);
}

}  // namespace cubind::ctl
