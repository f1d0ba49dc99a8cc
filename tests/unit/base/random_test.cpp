#include "base/random.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "base/error.hpp"

namespace cubind {
namespace {

Digest state_1234() {
  Digest digest;
  digest.bytes[0] = 1;  // little-endian words 1, 2, 3, 4
  digest.bytes[8] = 2;
  digest.bytes[16] = 3;
  digest.bytes[24] = 4;
  return digest;
}

}  // namespace

// The first values of the authors' C code with the state 1, 2, 3, 4; the Rust crate rand_xoshiro pins the
// same.
TEST_CASE("the generator is xoshiro256 star star") {
  Random random(state_1234());
  for (const std::uint64_t expected : {std::uint64_t{11520}, std::uint64_t{0}, std::uint64_t{1509978240},
                                       std::uint64_t{1215971899390074240}}) {
    CHECK(random.next() == expected);
  }
}

// SplitMix64 of seed 0 starts with e220a8397b1dcdaf, 6e789e6aa1b965f4, 06c45d188009454f, f88bb8a8724c81ec.
TEST_CASE("a seed becomes the state through SplitMix64") {
  Digest digest;
  const std::uint64_t words[] = {0xe220a8397b1dcdafu, 0x6e789e6aa1b965f4u, 0x06c45d188009454fu,
                                 0xf88bb8a8724c81ecu};
  for (std::size_t i = 0; i < 32; ++i) {
    digest.bytes[i] = static_cast<std::uint8_t>(words[i / 8] >> (8 * (i % 8)));
  }
  Random from_digest(digest);
  Random from_seed(0);
  Random from_zero(Digest{});
  for (int i = 0; i < 10; ++i) {
    const std::uint64_t expected = from_digest.next();
    CHECK(from_seed.next() == expected);
    CHECK(from_zero.next() == expected);
  }
}

TEST_CASE("a shuffle is pinned forever") {
  std::vector<int> items(10);
  std::iota(items.begin(), items.end(), 0);
  Random(Digest::of("job")).shuffle(std::span(items));
  CHECK(items == std::vector<int>{0, 4, 7, 1, 5, 3, 6, 8, 9, 2});
}

TEST_CASE("a shuffle is a permutation and every order occurs equally often") {
  Random random(11);
  std::vector<int> count(6);
  for (int i = 0; i < 60000; ++i) {
    std::vector<std::size_t> items{0, 1, 2};
    random.shuffle(std::span(items));
    CHECK(items[0] + items[1] + items[2] == 3);
    ++count[items[0] * 2 + (items[1] > items[2] ? 1 : 0)];
  }
  for (const int each : count) {
    CHECK(std::abs(each - 10000) < 500);
  }
}

TEST_CASE("values below a bound stay below it and are uniform") {
  Random random(5);
  std::vector<int> count(7);
  for (int i = 0; i < 70000; ++i) {
    ++count.at(static_cast<std::size_t>(random.below(7)));
  }
  for (const int each : count) {
    CHECK(std::abs(each - 10000) < 500);
  }
  CHECK(random.below(1) == 0);
  CHECK_THROWS_AS(random.below(0), Error);
}

TEST_CASE("a bound above half of the range is not biased") {
  Random random(6);
  const std::uint64_t bound = (std::uint64_t{1} << 63) + (std::uint64_t{1} << 62);  // three quarters
  int low = 0;
  for (int i = 0; i < 30000; ++i) {
    low += random.below(bound) < bound / 3;
  }
  CHECK(std::abs(low - 10000) < 500);  // 15000 if the remainder were taken without rejection
}

TEST_CASE("uniform values lie in zero to one without one") {
  Random random(7);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double value = random.uniform();
    CHECK((value >= 0 && value < 1));
    sum += value;
  }
  CHECK(std::abs(sum / 10000 - 0.5) < 0.02);
}

TEST_CASE("shuffling nothing or one item works") {
  Random random(8);
  std::vector<int> none;
  std::vector<int> one{4};
  random.shuffle(std::span(none));
  random.shuffle(std::span(one));
  CHECK(one == std::vector<int>{4});
}

}  // namespace cubind
