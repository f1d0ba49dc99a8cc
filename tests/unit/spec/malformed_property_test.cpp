// Random damage to a valid spec: whatever the parser is given, it accepts or throws an Error that names the
// file.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/random.hpp"
#include "tests/support/valid_configurations.hpp"
#include "tests/unit/spec/spec_builder.hpp"

namespace cubind::test {
using test::SpecBuilder;

namespace {

enum class Answer { Accepted, Refused };

Answer ask(const SpecBundle& bundle) {
  try {
    parse_kernel_spec(bundle);
    return Answer::Accepted;
  } catch (const Error& error) {
    CHECK(error.where().starts_with("scale.json"));
    CHECK(!error.cause().empty());
    return Answer::Refused;
  }
}

OrderedJson random_value(Random& random) {
  switch (random.below(12)) {
    case 0:
      return nullptr;
    case 1:
      return true;
    case 2:
      return -1;
    case 3:
      return 9223372036854775807;
    case 4:
      return 0.5;
    case 5:
      return "";
    case 6:
      return "N +";
    case 7:
      return "{T}{";
    case 8:
      return OrderedJson::array();
    case 9:
      return OrderedJson::object();
    case 10:
      return OrderedJson::array({OrderedJson::array({1})});
    default:
      return OrderedJson{{"edges", {1, 2}}};
  }
}

// A random place of the document, the root excluded.
OrderedJson& random_node(OrderedJson& root, Random& random) {
  OrderedJson* node = &root;
  do {
    auto at = node->begin();
    std::advance(at, static_cast<std::ptrdiff_t>(random.below(node->size())));
    node = &*at;
  } while (node->is_structured() && !node->empty() && random.below(4) != 0);
  return *node;
}

}  // namespace

TEST_CASE("a spec with a random value in a random place is accepted or refused with its file named") {
  Random random(20240601);
  const SpecBuilder sound;
  std::size_t refused = 0;
  for (int round = 0; round < 600; ++round) {
    OrderedJson damaged = sound.json;
    for (std::uint64_t edits = 1 + random.below(3); edits > 0; --edits) {
      random_node(damaged, random) = random_value(random);
    }
    const std::string text = damaged.dump();
    INFO(text);
    refused += ask({"scale.json", text, sound.files}) == Answer::Refused ? 1 : 0;
  }
  CHECK(refused > 400);
}

TEST_CASE("a spec with a member removed is accepted or refused with its file named") {
  const OrderedJson flat = SpecBuilder().json.flatten();
  std::size_t refused = 0;
  for (const auto& [pointer, value] : flat.items()) {
    for (OrderedJson::json_pointer at(pointer); !at.empty(); at = at.parent_pointer()) {
      SpecBuilder builder;
      OrderedJson& parent = builder.json.at(at.parent_pointer());
      if (parent.is_array()) {
        parent.erase(static_cast<std::size_t>(std::stoul(at.back())));
      } else {
        parent.erase(at.back());
      }
      INFO(at.to_string());
      refused += ask({"scale.json", builder.json.dump(), builder.files}) == Answer::Refused ? 1 : 0;
    }
  }
  CHECK(refused > 40);
}

TEST_CASE("a spec with random bytes in its text is accepted or refused with its file named") {
  Random random(7);
  const SpecBuilder sound;
  const std::string text = sound.json.dump();
  std::size_t refused = 0;
  for (int round = 0; round < 600; ++round) {
    std::string damaged = text;
    for (std::uint64_t edits = 1 + random.below(4); edits > 0; --edits) {
      damaged[static_cast<std::size_t>(random.below(damaged.size()))] = static_cast<char>(random.below(256));
    }
    refused += ask({"scale.json", damaged, sound.files}) == Answer::Refused ? 1 : 0;
  }
  CHECK(refused > 400);
}

TEST_CASE("a spec that was accepted after random edits of its numbers is enumerated or fails with an Error") {
  Random random(11);
  for (int round = 0; round < 200; ++round) {
    SpecBuilder builder;
    for (auto& value : builder.json["tunables"]["THREADS"]) {
      value = static_cast<std::int64_t>(random.next() >> random.below(64));
    }
    builder.json["default"] = OrderedJson::array({builder.json["default"][0]});
    builder.json["default"][0]["THREADS"] = builder.json["tunables"]["THREADS"][0];
    try {
      const auto spec = builder.parse();
      const Problem problem = spec->canonicalize(parse_problem("N=100,D=64,T=f32"), "problem");
      for (const Configuration& configuration : valid_configurations(*spec, problem, test::h200())) {
        CHECK(configuration.value("THREADS") <= 1024);
      }
    } catch (const Error& error) {
      CHECK(error.where().starts_with("scale.json"));
    }
  }
}

}  // namespace cubind::test
