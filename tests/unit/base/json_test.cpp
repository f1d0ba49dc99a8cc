#include "base/json.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind {
namespace {

std::string parse_refusal(std::string_view text, const JsonLimits& limits = {}) {
  return test::message_of([&] { parse_json_strict(text, "a.json", limits); });
}

std::string object_of(int members) {
  std::string text = "{";
  for (int i = 0; i < members; ++i) {
    text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
  }
  return text + "}";
}

}  // namespace

TEST_CASE("members keep their declared order and values their types") {
  const auto document =
      parse_json_strict(R"({"z": [1, -2, 2.5, true, null, "x"], "a": {}, "m": []})", "a.json");
  CHECK(document.dump() == R"({"z":[1,-2,2.5,true,null,"x"],"a":{},"m":[]})");
  CHECK(document["z"][0].is_number_unsigned());
  CHECK(document["z"][2].is_number_float());
  CHECK(parse_json_strict(" 5 ", "a.json") == 5);
}

TEST_CASE("a duplicate key is an error that names pointer and line") {
  CHECK(parse_refusal("{\"problem\": {\n  \"dims\": {\"N\": 1, \"N\": 2}}}") ==
        "a.json /problem/dims/N: duplicate key (line 2, column 20)");
  CHECK(parse_refusal(R"({"a": [{}, {"x/y": 1, "x/y": 2}]})") ==
        "a.json /a/1/x~1y: duplicate key (line 1, column 23)");
  CHECK(parse_refusal(R"({"a": 1, "\u0061": 2})").starts_with("a.json /a: duplicate key"));
}

TEST_CASE("the same key in two objects is no duplicate") {
  CHECK(parse_refusal(R"([{"N": 1}, {"N": 2, "x": {"N": 3}}])") == "");
}

TEST_CASE("a syntax error names line and column") {
  CHECK(parse_refusal("{\n  \"a\": 1,\n}").starts_with("a.json line 3, column 1: syntax error"));
  CHECK(parse_refusal("").starts_with("a.json line 1, column 1: syntax error"));
  CHECK(parse_refusal("{\"a\": 01}").starts_with("a.json line 1, column 8: syntax error"));
  CHECK(parse_refusal("[1] 2").starts_with("a.json line 1, column 5: syntax error"));
  CHECK(parse_refusal("[1, // one\n2]").find("syntax error") != std::string::npos);
  CHECK(parse_refusal("[NaN]").find("syntax error") != std::string::npos);
  CHECK(parse_refusal("\"\xff\"").find("a.json line 1") == 0);
}

TEST_CASE("a number outside of double is an error with a place") {
  CHECK(parse_refusal("[1, 1e999]").starts_with("a.json line 1, column"));
}

TEST_CASE("nesting is limited") {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  CHECK(parse_refusal(nested(64)) == "");
  CHECK(parse_refusal(nested(65)) == "a.json line 1, column 65: nested deeper than 64 levels");
  CHECK(parse_refusal(std::string(1000000, '[')) == "a.json line 1, column 65: nested deeper than 64 levels");
  CHECK(parse_refusal("{\"a\": {\"b\": 1}}", {.max_depth = 1}) ==
        "a.json line 1, column 7: nested deeper than 1 levels");
}

TEST_CASE("size is limited") {
  CHECK(parse_refusal("[1, 2]", {.max_bytes = 5}) == "a.json: 6 bytes of JSON, at most 5 are taken");
  CHECK(parse_refusal("[1, 2]", {.max_bytes = 6}) == "");
}

TEST_CASE("an object with very many members is parsed in linear time") {
  CHECK(parse_json_strict(object_of(200'000), "a.json", {.max_members = 200'000}).size() == 200'000);
}

TEST_CASE("the members of an object are limited and the error names the object") {
  CHECK(parse_refusal(object_of(1000)) == "");
  CHECK(parse_refusal(object_of(1001)) == "a.json: an object of more than 1000 members");
  CHECK(parse_refusal(R"({"a": [0, {"x": )" + object_of(1001) + "}]}") ==
        "a.json /a/1/x: an object of more than 1000 members");
}

}  // namespace cubind
