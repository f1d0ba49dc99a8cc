#include "client/cubindctl/csv_reader.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cubind::ctl {

CsvReader::CsvReader(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {
  if (text_.starts_with("\xef\xbb\xbf")) {
    text_.remove_prefix(3);  // spreadsheets write it
  }
}

bool CsvReader::next(Row& row) {
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

std::string CsvReader::place() const { return "line " + std::to_string(line_); }

std::string CsvReader::place(std::size_t cell) const {
  return place() + ", column " + std::to_string(cell + 1);
}

void CsvReader::read_row(Row& row) {
  do {
    row.push_back(read_cell(row.size()));
  } while (take(','));
  take('\r');
  if (take('\n')) {
    ++next_line_;
  }
}

std::string CsvReader::read_cell(std::size_t cell) {
  skip_spaces();
  std::string content = text_.starts_with('"') ? read_quoted(cell) : read_plain(cell);
  skip_spaces();
  if (!text_.empty() && std::string_view(",\r\n").find(text_.front()) == std::string_view::npos) {
    fail(cell, "text follows the closing quote: a quote within a cell is doubled");
  }
  return content;
}

std::string CsvReader::read_plain(std::size_t cell) {
  const std::size_t end = std::min(text_.find_first_of(",\r\n"), text_.size());
  std::string content(text_.substr(0, end));
  text_.remove_prefix(end);
  if (content.find('"') != std::string::npos) {
    fail(cell, "a quote stands within the cell " + quoted(content) +
                   ": quote the whole cell, and double the quotes in it");
  }
  content.erase(content.find_last_not_of(" \t") + 1);
  return content;
}

std::string CsvReader::read_quoted(std::size_t cell) {
  std::string content;
  take('"');
  for (;;) {
    const std::size_t end = text_.find('"');
    if (end == std::string_view::npos) {
      fail(cell, "the quoted cell does not end");
    }
    content += text_.substr(0, end);
    text_.remove_prefix(end + 1);
    if (!take('"')) {
      break;
    }
    content += '"';
  }
  next_line_ += static_cast<std::size_t>(std::ranges::count(content, '\n'));
  return content;
}

void CsvReader::skip_spaces() { text_.remove_prefix(std::min(text_.find_first_not_of(" \t"), text_.size())); }

bool CsvReader::take(char expected) {
  if (!text_.starts_with(expected)) {
    return false;
  }
  text_.remove_prefix(1);
  return true;
}

void CsvReader::fail(std::size_t cell, const std::string& cause) const {
  throw Error(ErrorCode::InvalidArgument, file_ + " " + place(cell), cause);
}

}  // namespace cubind::ctl
