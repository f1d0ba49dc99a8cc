#include "client/web/view.hpp"

#include <catch2/catch.hpp>

#include "base/text.hpp"

namespace cubind::test {
namespace {

using Catch::Contains;
using web::escaped, web::Grid, web::html_of, web::View;

View numbers(std::size_t rows) {
  Grid grid{{{"name"}, {"number", true}}, {}, "nothing", true};
  for (std::size_t i = 0; i < rows; ++i) {
    grid.rows.push_back({{"row" + std::to_string(i)}, {std::to_string(i), static_cast<double>(i)}});
  }
  return {"Which?", "", {std::move(grid)}};
}

std::string shown(std::size_t rows, const std::map<std::string, std::string>& query) {
  return html_of(numbers(rows), {"/records", query});
}

}  // namespace

TEST_CASE("text cannot begin a tag or end an attribute") {
  CHECK(escaped("<a href='x\">&\x1b") == "&lt;a href=&#39;x&quot;&gt;&amp;\\u001b");
}

TEST_CASE("a table without rows is a sentence whose commands are code") {
  CHECK_THAT(html_of({"Which?", "", {Grid{{{"name"}}, {}, "none: `cubindctl tune` makes one"}}}, {"/", {}}),
             Contains("none: <code>cubindctl tune</code> makes one") && !Contains("<table"));
}

TEST_CASE("a column without a value is left out and the others keep their order and their numbers") {
  const Grid grid{{{"a"}, {"empty"}, {"b"}}, {{{"1"}, {"-"}, {"2"}}, {{"3"}, {""}, {"-"}}}, "", true};
  CHECK_THAT(html_of({"Which?", "", {grid}}, {"/", {}}),
             !Contains("empty") && Contains("sort=2\">b</a>") && Contains("data-name=\"b\">2</td>"));
}

TEST_CASE("a hundred thousand rows are pages of a hundred") {
  const std::string html = shown(100'000, {{"page", "3"}});
  CHECK_THAT(html, Contains("201 to 300 of 100000 rows") && Contains(">row200<") && !Contains(">row300<"));
  CHECK_THAT(html, Contains("/records?page=2\"") && Contains("/records?page=4\""));
  CHECK_THAT(shown(150, {{"page", "9"}}),
             Contains("101 to 150 of 150 rows") && Contains("<span class=\"quiet\">next rows"));
}

TEST_CASE("rows are sorted by numbers where a column has them and the link turns the order") {
  const std::string up = shown(12, {{"sort", "1"}}), down = shown(12, {{"sort", "1"}, {"down", "1"}});
  CHECK(up.find(">row2<") < up.find(">row10<"));
  CHECK(down.find(">row10<") < down.find(">row2<"));
  CHECK_THAT(up, Contains("aria-sort=\"ascending\"><a href=\"/records?down=1&amp;sort=1\""));
  CHECK_THAT(shown(2, {{"sort", "7"}, {"page", "x"}}), Contains(">row0<"));
}

TEST_CASE("rows are filtered by all words and the form keeps the order") {
  const std::string html = shown(12, {{"words", "ROW1 11"}, {"sort", "1"}});
  CHECK_THAT(html, Contains("1 row<") && Contains(">row11<") && !Contains(">row10<"));
  CHECK_THAT(html, Contains("name=\"sort\" value=\"1\"") && Contains("value=\"ROW1 11\""));
}

TEST_CASE("what the address says is text in the links and in the form") {
  const std::string html = shown(200, {{"\"><b>", "\"><i>"}, {"words", "r<o"}});
  CHECK_THAT(html, !Contains("<b>") && !Contains("<i>") && !Contains("r<o"));
}

}  // namespace cubind::test
