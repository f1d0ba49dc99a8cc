#include "base/digest.hpp"

#include <catch2/catch.hpp>
#include <unordered_set>

namespace cubind {
namespace {

constexpr char kAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

}  // namespace

TEST_CASE("a digest is SHA-256 by the vectors of FIPS 180") {
  CHECK(Digest::of("abc").hex() == kAbc);
  CHECK(Digest::of("").hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(Digest::of(std::string(1000000, 'a')).hex() ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("a digest in pieces equals the digest of the whole and the object can be used again") {
  Sha256 hash;
  CHECK(hash.update("a").update("").update("bc").finish() == Digest::of("abc"));
  CHECK(hash.update("abc").finish() == Digest::of("abc"));
}

TEST_CASE("hex and digest are inverse and either case is read") {
  std::string upper(kAbc);
  for (char& c : upper) {
    c = static_cast<char>(std::toupper(c));
  }
  CHECK(Digest::from_hex(kAbc) == Digest::of("abc"));
  CHECK(Digest::from_hex(upper) == Digest::of("abc"));
}

TEST_CASE("only 64 hexadecimal digits are a digest") {
  CHECK_FALSE(Digest::from_hex(""));
  CHECK_FALSE(Digest::from_hex(std::string(63, 'a')));
  CHECK_FALSE(Digest::from_hex(std::string(65, 'a')));
  CHECK_FALSE(Digest::from_hex(std::string(63, 'a') + "g"));
  CHECK_FALSE(Digest::from_bytes(std::string(31, 'a')));
}

TEST_CASE("raw bytes and digest are inverse") {
  const Digest digest = Digest::of("abc");
  CHECK(Digest::from_bytes(digest.view()) == digest);
}

TEST_CASE("a digest made by default is zero and orders below others") {
  CHECK(Digest{}.is_zero());
  CHECK_FALSE(Digest::of("").is_zero());
  CHECK(Digest{} < Digest::of(""));
  CHECK(*Digest::from_hex("01" + std::string(62, '0')) < *Digest::from_hex("ff" + std::string(62, '0')));
}

TEST_CASE("digests can be members of a hash set") {
  std::unordered_set<Digest> set;
  for (int i = 0; i < 100; ++i) {
    set.insert(Digest::of(std::to_string(i % 50)));
  }
  CHECK(set.size() == 50);
}

}  // namespace cubind
