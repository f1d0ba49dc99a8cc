#include "tuner/spec/occupancy.hpp"

#include <catch2/catch.hpp>

namespace cubind {
namespace {

TEST_CASE("registers are allocated a warp at a time and limit the blocks of an SM") {
  CHECK(blocks_per_sm(9, 0, {256, 32, 0}) == 8u);
  CHECK(blocks_per_sm(9, 0, {256, 64, 0}) == 4u);
  CHECK(blocks_per_sm(9, 0, {256, 65, 0}) == 3u);  // 72 are allocated: 28 warps
  CHECK(occupancy(9, 0, {256, 65, 0}) == 0.375);
}

TEST_CASE("shared memory limits the blocks and each block has a reserved part of it") {
  CHECK(blocks_per_sm(9, 0, {128, 32, 113 * 1024}) == 2u);
  CHECK(blocks_per_sm(9, 0, {128, 32, 114 * 1024}) == 1u);
}

TEST_CASE("small blocks meet the limit of blocks before that of threads") {
  CHECK(occupancy(9, 0, {32, 16, 0}) == 0.5);
  CHECK(occupancy(8, 6, {32, 16, 0}) == Approx(1.0 / 3));
}

TEST_CASE("a block that fits on no SM occupies nothing") { CHECK(occupancy(9, 0, {1024, 255, 0}) == 0); }

TEST_CASE("a block gets the shared memory of an SM but for the reserved part") {
  CHECK(shared_optin_bytes(75) == 64 * 1024);
  CHECK(shared_optin_bytes(89) == 99 * 1024);
  CHECK(shared_optin_bytes(90) == 227 * 1024);
  CHECK(shared_optin_bytes(70) == shared_optin_bytes(75));    // an architecture that is not listed has as
  CHECK(shared_optin_bytes(103) == shared_optin_bytes(100));  // much as the one listed before it
}

TEST_CASE("the occupancy of an architecture that is not listed is unknown") {
  CHECK_FALSE(occupancy(6, 1, {256, 32, 0}));
  CHECK_FALSE(occupancy(9, 0, {0, 32, 0}));
}

}  // namespace
}  // namespace cubind
