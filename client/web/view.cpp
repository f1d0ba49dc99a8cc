#include "client/web/view.hpp"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <sstream>
#include <utility>

#include "base/text.hpp"
#include "client/cubindctl/terminal/json_output.hpp"

namespace cubind::web {
namespace {

constexpr std::size_t kMostUnbroken = 24;  // bytes of a cell that stays on one line

/// A long list of values may go on in the next line.
std::string breakable(const std::string& text) {
  return replaced(replaced(escaped(text), ",", ",<wbr>"), ",<wbr> ", ", ");
}

std::string prose(const std::string& text) {
  std::string html;
  bool code = false;
  for (std::size_t at = 0; at <= text.size(); code = !code) {
    const std::size_t end = std::min(text.find('`', at), text.size());
    const std::string part = breakable(text.substr(at, end - at));
    html += code ? "<code>" + part + "</code>" : part;
    at = end + 1;
  }
  return html;
}

std::size_t rows_of(const Grid& table) { return table.cell_of ? table.count : table.rows.size(); }

Cell cell_of(const Grid& table, std::size_t row, std::size_t column) {
  return table.cell_of ? table.cell_of(row, column) : table.rows[row][column];
}

/// The order, the filter and the part of a table that the address asks for.
class AskedRows {
 public:
  AskedRows(const Grid& table, const Request& request) : table_(table), request_(request) {
    std::istringstream words(ctl::lower_case(value("words")));
    for (std::string word; words >> word;) {
      words_.push_back(word);
    }
    for (std::size_t row = 0; row < rows_of(table); ++row) {
      if (matches(row)) {
        rows_.push_back(row);
      }
    }
    sort();
    const std::size_t pages = std::max<std::size_t>(1, (rows_.size() + kRowsOfPage - 1) / kRowsOfPage);
    page_ = std::clamp<std::size_t>(number("page").value_or(1), 1, pages);
    last_page_ = pages;
  }

  std::vector<Row> shown() const {
    const std::size_t begin = (page_ - 1) * kRowsOfPage, end = std::min(begin + kRowsOfPage, rows_.size());
    std::vector<Row> rows;
    for (std::size_t i = begin; i < end; ++i) {
      Row& row = rows.emplace_back();
      for (std::size_t column = 0; column < table_.columns.size(); ++column) {
        row.push_back(cell(rows_[i], column));
      }
    }
    return rows;
  }

  std::string head(std::size_t column) const {
    const bool is_sorted = sorted_ == column;
    const std::string address =
        link({{"sort", std::to_string(column)}, {"down", is_sorted && !down_ ? "1" : ""}, {"page", ""}});
    return "<th scope=\"col\"" + std::string(table_.columns[column].is_number ? " class=\"number\"" : "") +
           (is_sorted ? std::string(" aria-sort=\"") + (down_ ? "descending" : "ascending") + "\"" : "") +
           "><a href=\"" + address + "\">" + escaped(table_.columns[column].name) + "</a></th>";
  }

  std::string form() const {
    std::string html = "<form class=\"tools\" role=\"search\">";
    for (const auto& [name, text] : request_.query) {
      if (name != "words" && name != "page") {
        html += "<input type=\"hidden\" name=\"" + escaped(name) + "\" value=\"" + escaped(text) + "\">";
      }
    }
    return html +
           "<input type=\"search\" name=\"words\" placeholder=\"filter\" aria-label=\"filter the rows\" "
           "value=\"" +
           escaped(value("words")) + "\"><button>filter</button><span class=\"quiet\">" + range() +
           "</span></form>";
  }

  std::string turns() const {
    if (last_page_ == 1) {
      return "";
    }
    const auto turn = [&](bool possible, std::size_t page, const std::string& text) {
      return possible ? "<a href=\"" + link({{"page", std::to_string(page)}}) + "\">" + text + "</a>"
                      : "<span class=\"quiet\">" + text + "</span>";
    };
    return "<nav class=\"tools\" aria-label=\"pages of the table\">" +
           turn(page_ > 1, page_ - 1, "previous rows") + turn(page_ < last_page_, page_ + 1, "next rows") +
           "</nav>";
  }

 private:
  Cell cell(std::size_t row, std::size_t column) const { return cell_of(table_, row, column); }

  std::string value(const std::string& name) const {
    const auto found = request_.query.find(name);
    return found == request_.query.end() ? "" : found->second;
  }

  std::optional<std::size_t> number(const std::string& name) const {
    const std::string text = value(name);
    const bool is_number =
        !text.empty() && text.size() < 8 && text.find_first_not_of("0123456789") == std::string::npos;
    return is_number ? std::optional<std::size_t>(std::stoul(text)) : std::nullopt;
  }

  bool matches(std::size_t row) const {
    const std::string text = words_.empty() || table_.text_of ? "" : text_of(row);
    const std::string& all = table_.text_of ? table_.text_of(row) : text;
    return std::ranges::all_of(words_,
                               [&](const std::string& word) { return all.find(word) != std::string::npos; });
  }

  std::string text_of(std::size_t row) const {
    std::string text;
    for (std::size_t column = 0; column < table_.columns.size(); ++column) {
      text += ctl::lower_case(cell(row, column).text) + " ";
    }
    return text;
  }

  // What is not known comes last in both directions.
  void sort() {
    sorted_ = number("sort").value_or(table_.columns.size());
    down_ = value("down") == "1";
    if (sorted_ >= table_.columns.size()) {
      return;
    }
    std::vector<std::pair<Cell, std::size_t>> keys;
    for (const std::size_t row : rows_) {
      keys.emplace_back(cell(row, sorted_), row);
    }
    const auto is_less = [&](const auto& a, const auto& b) {
      const Cell &x = a.first, &y = b.first;
      if (!table_.columns[sorted_].is_number) {
        return down_ ? y.text < x.text : x.text < y.text;
      }
      if (!x.number || !y.number) {
        return x.number && !y.number;
      }
      return down_ ? *y.number < *x.number : *x.number < *y.number;
    };
    std::ranges::stable_sort(keys, is_less);
    std::ranges::transform(keys, rows_.begin(), [](const auto& key) { return key.second; });
  }

  std::string range() const {
    const std::size_t begin = (page_ - 1) * kRowsOfPage;
    const std::string all = counted(rows_.size(), "row");
    return last_page_ == 1 ? all
                           : std::to_string(begin + 1) + " to " +
                                 std::to_string(std::min(begin + kRowsOfPage, rows_.size())) + " of " + all;
  }

  std::string link(const std::vector<std::pair<std::string, std::string>>& changes) const {
    auto query = request_.query;
    for (const auto& [name, text] : changes) {
      query[name] = text;
    }
    std::string address = request_.path;
    char mark = '?';
    for (const auto& [name, text] : query) {
      if (!text.empty()) {
        address += mark + url_encoded(name) + "=" + url_encoded(text);
        mark = '&';
      }
    }
    return escaped(address);
  }

  const Grid& table_;
  const Request& request_;
  std::vector<std::string> words_;
  std::vector<std::size_t> rows_;
  std::size_t sorted_ = 0, page_ = 1, last_page_ = 1;
  bool down_ = false;
};

std::string linked(const std::string& html, const std::string& link) {
  return link.empty() ? html : "<a href=\"" + escaped(link) + "\">" + html + "</a>";
}

std::string cell_html(const Cell& cell, const Column& column) {
  std::string text = linked(prose(cell.text), cell.link);
  if (cell.share) {
    const std::string width = std::to_string(std::clamp(std::lround(100 * *cell.share), 0L, 100L));
    text =
        "<svg class=\"bar\" aria-hidden=\"true\"><rect class=\"track\" width=\"100%\" height=\"14\"/><rect "
        "class=\"main\" width=\"" +
        width + "%\" height=\"14\"/></svg>" + text;
  }
  const bool is_short = cell.text.size() <= kMostUnbroken && !cell.share;
  return "<td" +
         std::string(column.is_number ? " class=\"number\""
                     : is_short       ? " class=\"short\""
                                      : "") +
         " data-name=\"" + escaped(column.name) + "\">" + text + "</td>";
}

std::string table_html(const Grid& table, const std::vector<std::size_t>& columns,
                       const std::vector<Row>& rows, const std::string& head) {
  std::string html = "<div class=\"scroll\" tabindex=\"0\"><table class=\"cards\"><thead><tr>" + head +
                     "</tr></thead><tbody>";
  for (const Row& row : rows) {
    html += "<tr>";
    for (const std::size_t i : columns) {
      html += cell_html(row[i], table.columns[i]);
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>";
}

struct Renderer {
  const Request& request;

  std::string operator()(const Heading& heading) const { return "<h2>" + escaped(heading.text) + "</h2>"; }
  std::string operator()(const Sentence& sentence) const {
    return sentence.text.empty() ? "" : "<p>" + linked(prose(sentence.text), sentence.link) + "</p>";
  }
  std::string operator()(const Grid& table) const {
    if (table.rows.empty() && table.count == 0) {
      return table.none.empty() ? "" : "<p class=\"absent\">" + prose(table.none) + "</p>";
    }
    std::string head;
    const std::vector<std::size_t> columns = table.told.empty() ? told_columns(table) : table.told;
    if (table.is_asked) {
      const AskedRows asked(table, request);
      for (const std::size_t i : columns) {
        head += asked.head(i);
      }
      return asked.form() + table_html(table, columns, asked.shown(), head) + asked.turns();
    }
    for (const std::size_t i : columns) {
      head += "<th scope=\"col\"" + std::string(table.columns[i].is_number ? " class=\"number\"" : "") + ">" +
              escaped(table.columns[i].name) + "</th>";
    }
    return table_html(table, columns, table.rows, head);
  }
};

}  // namespace

std::vector<std::size_t> told_columns(const Grid& table) {
  const auto rows = std::views::iota(std::size_t{0}, rows_of(table));
  std::vector<std::size_t> columns;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    const auto is_told = [&](std::size_t row) {
      const std::string text = cell_of(table, row, column).text;
      return !text.empty() && text != "-";
    };
    if (std::ranges::any_of(rows, is_told)) {
      columns.push_back(column);
    }
  }
  return columns;
}

std::string escaped(const std::string& text) {
  std::string html;
  for (const char c : printable(text)) {
    switch (c) {
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '&':
        html += "&amp;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

std::string html_of(const View& view, const Request& request) {
  std::string html = "<h1>" + escaped(view.question) + "</h1>";
  if (!view.command.empty()) {
    html += "<p class=\"quiet\">The same on a terminal: <code>" + escaped(view.command) + "</code></p>";
  }
  for (const Block& block : view.blocks) {
    html += std::visit(Renderer{request}, block) + "\n";
  }
  return html;
}

}  // namespace cubind::web
