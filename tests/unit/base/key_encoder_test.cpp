#include "base/key_encoder.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <map>

#include "base/error.hpp"
#include "base/hex.hpp"

namespace cubind {
namespace {

KeyEncoder every_kind() {
  KeyEncoder key("test", 7);
  key.field("text", "abc").field("number", -2).field("flag", true).field("ratio", 0.5);
  key.field("digest", Digest::of("abc"));
  key.list("pair", 2).field("a", 1).field("b", 2);
  key.begin("group").field("x", "").end();
  return key;
}

}  // namespace

TEST_CASE("the bytes of a key are pinned") {
  KeyEncoder key("k", 1);
  key.field("a", "xy").field("n", 258).field("b", false);
  CHECK(hex(key.bytes()) ==
        "43424b31"  // CBK1
        "0000000000000001"
        "6b"
        "00000001"  // schema k, version 1
        "73"
        "0000000000000001"
        "61"
        "0000000000000002"
        "7879"
        "69"
        "0000000000000001"
        "6e"
        "0000000000000102"
        "62"
        "0000000000000001"
        "62"
        "00");
}

TEST_CASE("the digest of a key with every kind of field is pinned") {
  CHECK(every_kind().digest().hex() == "e3451928de22b5a8f6da5f510477ca9853d5e2d5ca60a3be7e7f10f9c7cb50d2");
  CHECK(every_kind().digest() == Digest::of(every_kind().bytes()));
}

TEST_CASE("different fields never give the same bytes") {
  using Fill = std::function<void(KeyEncoder&)>;
  const std::vector<Fill> fills = {
      [](KeyEncoder&) {},
      [](KeyEncoder& key) { key.field("ab", "c"); },
      [](KeyEncoder& key) { key.field("a", "bc"); },
      [](KeyEncoder& key) { key.field("a", "b").field("c", ""); },
      [](KeyEncoder& key) { key.field("a", "").field("b", "c"); },
      [](KeyEncoder& key) { key.field("a", ""); },
      [](KeyEncoder& key) { key.field("a", 0); },
      [](KeyEncoder& key) { key.field("a", false); },
      [](KeyEncoder& key) { key.field("a", 0.0); },
      [](KeyEncoder& key) { key.field("a", "0"); },
      [](KeyEncoder& key) { key.field("a", std::string(8, '\0')); },
      [](KeyEncoder& key) { key.field("a", Digest{}); },
      [](KeyEncoder& key) { key.list("a", 0); },
      [](KeyEncoder& key) { key.list("a", 1).field("b", ""); },
      [](KeyEncoder& key) { key.list("a", 0).field("b", ""); },
      [](KeyEncoder& key) { key.begin("a").end(); },
      [](KeyEncoder& key) { key.begin("a").field("b", "").end(); },
      [](KeyEncoder& key) { key.begin("a").end().field("b", ""); },
      [](KeyEncoder& key) { key.list("a", 2).list("b", 1).field("c", "").field("c", ""); },
      [](KeyEncoder& key) { key.list("a", 1).list("b", 1).field("c", "").field("c", ""); },
      [](KeyEncoder& key) { key.list("a", 1).list("b", 2).field("c", "").field("c", ""); },
  };
  std::map<std::string, std::size_t> seen;
  for (std::size_t i = 0; i < fills.size(); ++i) {
    KeyEncoder key("test", 1);
    fills[i](key);
    const auto [found, inserted] = seen.emplace(key.bytes(), i);
    INFO(i << " equals " << found->second);
    CHECK(inserted);
  }
}

TEST_CASE("schema name and version are part of the key") {
  CHECK(KeyEncoder("a", 1).digest() != KeyEncoder("a", 2).digest());
  CHECK(KeyEncoder("a", 1).digest() != KeyEncoder("b", 1).digest());
}

TEST_CASE("a string literal is text and not a boolean") {
  CHECK(KeyEncoder("k", 1).field("a", "x").bytes() ==
        KeyEncoder("k", 1).field("a", std::string("x")).bytes());
  CHECK(KeyEncoder("k", 1).field("a", "x").bytes() != KeyEncoder("k", 1).field("a", true).bytes());
}

TEST_CASE("integers of every width encode alike") {
  const std::string expected = KeyEncoder("k", 1).field("a", std::int64_t{5}).bytes();
  CHECK(KeyEncoder("k", 1).field("a", std::uint8_t{5}).bytes() == expected);
  CHECK(KeyEncoder("k", 1).field("a", std::uint64_t{5}).bytes() == expected);
  CHECK(KeyEncoder("k", 1).field("a", 5u).bytes() == expected);
}

TEST_CASE("what has no canonical form is refused") {
  KeyEncoder key("k", 1);
  CHECK_THROWS_AS(key.field("a", std::numeric_limits<std::uint64_t>::max()), Error);
  CHECK_THROWS_AS(key.field("a", std::numeric_limits<double>::quiet_NaN()), Error);
  CHECK(KeyEncoder("k", 1).field("a", -0.0).bytes() == KeyEncoder("k", 1).field("a", 0.0).bytes());
}

TEST_CASE("an open group or list has no bytes") {
  KeyEncoder key("k", 1);
  CHECK_THROWS_AS(key.end(), Error);
  key.begin("g");
  CHECK_THROWS_AS(key.bytes(), Error);
  key.list("l", 2).field("a", 1);
  CHECK_THROWS_AS(key.end(), Error);
  key.begin("b").end().end();
  CHECK_NOTHROW(key.bytes());
  CHECK_NOTHROW(key.digest());
}

}  // namespace cubind
