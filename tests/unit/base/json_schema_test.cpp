#include "base/json_schema.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "base/error.hpp"
#include "base/json.hpp"

namespace cubind {
namespace {

constexpr char kSchema[] = R"({
  "type": "object", "required": ["name", "tunables"], "additionalProperties": false,
  "properties": {
    "name": {"type": "string", "pattern": "^[a-z_]+$"},
    "tunables": {"type": "object", "additionalProperties": {"$ref": "#/definitions/values"}},
    "role": {"enum": ["in", "out"]},
    "list": {"type": "array", "items": {"type": "object", "properties": {"deep": {"type": ["integer", "null"]}}}},
    "either": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"edges": {"type": "array"}}}]}
  },
  "definitions": {"values": {"type": "array", "minItems": 1, "items": {"type": "integer"}}}
})";

std::string message(const std::string& text) {
  try {
    JsonSchema(kSchema, "s").validate(parse_json_strict(text, "s.json"), "s.json");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::InvalidArgument);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("all violations are reported in the order of the document") {
  const OrderedJson document = parse_json_strict(
      R"({"name": "RMS", "role": 3, "tunables": {"V": [1, 2, 3, 4, 5, 6, 7, 8, 9, "10", 11, "12"], "W": []}, "x": 1})",
      "s.json");
  std::vector<std::string> causes;
  for (const Error& error : JsonSchema(kSchema, "s").violations(document, "s.json")) {
    causes.push_back(error.where());
  }
  CHECK(causes == std::vector<std::string>{"s.json /x", "s.json /name", "s.json /role",
                                           "s.json /tunables/V/9", "s.json /tunables/V/11",
                                           "s.json /tunables/W"});
}

TEST_CASE("a document that satisfies its schema has no violations") {
  const OrderedJson document = parse_json_strict(R"({"name": "rms", "tunables": {}})", "s.json");
  CHECK(JsonSchema(kSchema, "s").violations(document, "s.json").empty());
}

TEST_CASE("a document that satisfies its schema passes") {
  CHECK(message(R"({"name": "rms", "tunables": {"V": [1, 2]}, "role": "in", "either": {"edges": []}})") ==
        "");
}

TEST_CASE("a violation is reported at its JSON pointer with what would be right") {
  CHECK(message(R"({"name": "rms", "tunables": {"V": [1, "x"]}})") ==
        "s.json /tunables/V/1: expected integer, found \"x\"");
  CHECK(message(R"({"name": 3, "tunables": {}})") == "s.json /name: expected string, found 3");
  CHECK(message(R"({"name": "rms", "tunables": {}, "role": "inn"})") ==
        "s.json /role: expected \"in\" or \"out\", found \"inn\"");
  CHECK(message(R"({"name": "RMS", "tunables": {}})") ==
        "s.json /name: expected text that matches ^[a-z_]+$, found \"RMS\"");
  CHECK(message(R"({"name": "rms", "tunables": {}, "list": [{}, {"deep": {}}]})") ==
        "s.json /list/1/deep: expected \"integer\" or \"null\", found an object");
  CHECK(message(R"([])") == "s.json: expected object, found an array");
}

TEST_CASE("a violation without an explanation of ours keeps the place and the value") {
  CHECK(message(R"({"name": "rms", "tunables": {"V": []}})") ==
        "s.json /tunables/V: Array should contain no fewer than 1 elements, found an array");
}

TEST_CASE("a missing key is reported at the object that lacks it") {
  CHECK(message(R"({"name": "rms"})") == "s.json: the key \"tunables\" is missing");
}

TEST_CASE("an unknown key is reported at its own pointer") {
  CHECK(message(R"({"name": "rms", "tunables": {}, "tunabels": {}})") ==
        "s.json /tunabels: unexpected key, did you mean \"tunables\"?");
  CHECK(message(R"({"name": "rms", "tunables": {}, "q/x": {}})") == "s.json /q~1x: unexpected key");
}

TEST_CASE("the deepest violation of an anyOf is reported") {
  CHECK(message(R"({"name": "rms", "tunables": {}, "either": {"edges": 3}})")
            .starts_with("s.json /either/edges: "));
  CHECK(message(R"({"name": "rms", "tunables": {}, "either": 3})").starts_with("s.json /either: "));
}

TEST_CASE("a schema that is no schema is an internal error") {
  try {
    const JsonSchema schema("{\"type\": 3}", "bad.schema.json");
    FAIL("not refused");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::Internal);
    CHECK(error.where() == "schema bad.schema.json");
  }
}

TEST_CASE("one compiled schema serves several threads") {
  const JsonSchema schema(kSchema, "spec");
  const OrderedJson good = parse_json_strict(R"({"name": "rms", "tunables": {"V": [1, 2]}})", "g.json");
  const OrderedJson bad = parse_json_strict(R"({"name": "RMS", "tunables": {}})", "b.json");
  std::atomic<int> refused = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        schema.validate(good, "g.json");
        try {
          schema.validate(bad, "b.json");
        } catch (const Error&) {
          ++refused;
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(refused == 200);
}

TEST_CASE("where one value alone is right the message says which") {
  const OrderedJson document = parse_json_strict(R"({"version": 2})", "t.json");
  CHECK_THROWS_WITH(
      JsonSchema(R"({"properties": {"version": {"const": 1}}})", "t").validate(document, "t.json"),
      "t.json /version: expected 1, found 2");
}

}  // namespace cubind
