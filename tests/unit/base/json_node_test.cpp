#include "base/json_node.hpp"

#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind {
namespace {

using test::refusal_of;

const OrderedJson& document() {
  static const OrderedJson parsed = parse_json_strict(
      R"({"name": "rms", "empty": "", "tunables": {"VECTOR": [1, 2, 3], "A/B~C": true}, "eps": 1e-6, "big": 9223372036854775808,
          "huge": 1e300, "three": 3.0, "none": null, "texts": ["a", "b"], "mixed": [1, "b"]})",
      "rmsnorm.json");
  return parsed;
}

JsonNode root() { return JsonNode(document(), "rmsnorm.json"); }

}  // namespace

TEST_CASE("a failure reads file pointer and cause") {
  CHECK(refusal_of([] { root().at("tunables").at("VECTOR").at(2).fail("3 is not a power of two"); }) ==
        "rmsnorm.json /tunables/VECTOR/2: 3 is not a power of two");
  CHECK(refusal_of([] { root().fail("is bad"); }) == "rmsnorm.json: is bad");
}

TEST_CASE("slash and tilde in a key are escaped in the pointer and plain in the key") {
  const JsonNode node = root().at("tunables").at("A/B~C");
  CHECK(node.pointer() == "/tunables/A~1B~0C");
  CHECK(node.key() == "A/B~C");
  CHECK(node.as_bool());
}

TEST_CASE("getters give values of their type") {
  CHECK(root().at("name").as_string() == "rms");
  CHECK(root().at("texts").at(1).as_string() == "b");
  CHECK(root().at("eps").as_number() == 1e-6);
  CHECK(root().at("tunables").at("VECTOR").at(0).as_number() == 1.0);
  CHECK(root().at("none").is_null());
}

TEST_CASE("a wrong type is reported with the right one") {
  CHECK(refusal_of([] { root().at("name").as_int64(); }) ==
        "rmsnorm.json /name: expected an integer, found a string");
  CHECK(refusal_of([] { root().at("tunables").as_string(); }) ==
        "rmsnorm.json /tunables: expected a string, found an object");
  CHECK(refusal_of([] { root().at("name").elements(); }) ==
        "rmsnorm.json /name: expected an array, found a string");
  CHECK(refusal_of([] { root().at("name").at("x"); }) ==
        "rmsnorm.json /name: expected an object, found a string");
  CHECK(refusal_of([] { root().at("mixed").at(0).as_string(); }) ==
        "rmsnorm.json /mixed/0: expected a string, found an integer");
  CHECK(refusal_of([] { root().at("none").as_bool(); }) ==
        "rmsnorm.json /none: expected true or false, found null");
}

TEST_CASE("integers beyond 64 bits and fractions are no integers") {
  CHECK(refusal_of([] { root().at("big").as_int64(); }) ==
        "rmsnorm.json /big: 9223372036854775808 is outside of the 64-bit integers");
  CHECK(refusal_of([] { root().at("huge").as_int64(); }) ==
        "rmsnorm.json /huge: 1e+300 is outside of the 64-bit integers");
  CHECK(refusal_of([] { root().at("three").as_int64(); }) ==
        "rmsnorm.json /three: 3.0 is not written as an integer");
}

TEST_CASE("an integer can be held to a range") {
  const JsonNode three = root().at("tunables").at("VECTOR").at(2);
  CHECK(three.as_int64(1, 3) == 3);
  CHECK(refusal_of([&] { three.as_int64(1, 2); }) == "rmsnorm.json /tunables/VECTOR/2: 3 is above 2");
  CHECK(refusal_of([&] { three.as_int64(4, 9); }) == "rmsnorm.json /tunables/VECTOR/2: 3 is below 4");
}

TEST_CASE("a missing member or element is reported at its parent") {
  CHECK(refusal_of([] { root().at("launches"); }) == "rmsnorm.json: the key \"launches\" is missing");
  CHECK(refusal_of([] { root().at("texts").at(2); }) ==
        "rmsnorm.json /texts: the element 2 is missing, there are 2");
  CHECK_FALSE(root().find("launches"));
  CHECK_FALSE(root().contains("launches"));
  CHECK(refusal_of([] { root().at("empty").as_nonempty_string(); }) ==
        "rmsnorm.json /empty: must not be empty");
}

TEST_CASE("members come in declared order") {
  std::vector<std::string> names;
  for (const JsonNode& member : root().members()) {
    names.push_back(member.key());
  }
  CHECK(names.front() == "name");
  CHECK(names.back() == "mixed");
  CHECK(root().size() == names.size());
}

TEST_CASE("an optional member has a fallback only where it is absent") {
  CHECK(root().string_or("name", "x") == "rms");
  CHECK(root().string_or("nam", "x") == "x");
  CHECK(root().int64_or("n", 4) == 4);
  CHECK(root().bool_or("n", true));
  CHECK(root().number_or("eps", 1.0) == 1e-6);
  CHECK(refusal_of([] { root().int64_or("name", 1); }) ==
        "rmsnorm.json /name: expected an integer, found a string");
}

TEST_CASE("an unexpected key is reported at its own place with the nearest known one") {
  const OrderedJson spec = parse_json_strict(R"({"name": "a", "tunabels": {}})", "s.json");
  CHECK(refusal_of([&] {
          JsonNode(spec, "s.json").expect_keys({"name", "tunables"});
        }) == "s.json /tunabels: unexpected key, did you mean \"tunables\"?");
  CHECK(refusal_of([&] {
          JsonNode(spec, "s.json").expect_keys({"name", "x"});
        }) == "s.json /tunabels: unexpected key (known: \"name\", \"x\")");
  CHECK(refusal_of([&] { JsonNode(spec, "s.json").expect_keys({"name", "tunabels", "x"}); }) == "");
}

TEST_CASE("a choice outside the list is reported with the list") {
  CHECK(root().at("name").as_choice({"layer", "rms"}) == 1);
  CHECK(refusal_of([] {
          root().at("name").as_choice({"rmsn", "layer"});
        }) == "rmsnorm.json /name: \"rms\" is not one of rmsn, layer; did you mean \"rmsn\"?");
}

TEST_CASE("of choices the longest that the word begins with is offered before one that looks like it") {
  const OrderedJson role = OrderedJson::parse(R"("input")");
  CHECK(refusal_of([&] {
          JsonNode(role, "k.json").as_choice({"in", "out", "inout"});
        }) == "k.json: \"input\" is not one of in, out, inout; did you mean \"in\"?");
}

TEST_CASE("a node may outlive the node it came from") {
  const JsonNode node = JsonNode(document(), "rmsnorm.json").at("tunables").at("VECTOR").at(1);
  CHECK(node.where() == "rmsnorm.json /tunables/VECTOR/1");
  CHECK(node.as_int64() == 2);
}

}  // namespace cubind
