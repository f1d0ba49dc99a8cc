#include "tuner/worker/idle_processes.hpp"

#include <catch2/catch.hpp>

namespace cubind::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kNow = 1'800'000'000'000'000;

WorkSample worked(std::uint32_t process, seconds ago) {
  return {process, kNow - static_cast<std::uint64_t>(std::chrono::microseconds(ago).count())};
}

TEST_CASE("a process is idle since its last sample") {
  const IdleTimes idle =
      idle_times({50, 60}, {50, 60}, {worked(50, seconds(3)), worked(60, seconds(40))}, kNow);
  CHECK(idle == IdleTimes{{50, seconds(3)}, {60, seconds(40)}});
}

TEST_CASE("of several samples of a process the last one counts") {
  CHECK(idle_times({50}, {50}, {worked(50, seconds(3)), worked(50, seconds(8))}, kNow).at(50) == seconds(3));
}

TEST_CASE("a process without a sample has never worked") {
  CHECK(idle_times({50}, {50}, {}, kNow).at(50) == milliseconds::max());
  CHECK(idle_times({50}, {50}, {{50, 0}}, kNow).at(50) == milliseconds::max());
}

TEST_CASE("a sample of the next moment is work of now") {
  CHECK(idle_times({50}, {50}, {worked(50, seconds(-2))}, kNow).at(50) == seconds(0));
}

TEST_CASE("nothing is said of processes of other users though they may work") {
  CHECK(idle_times({50, 60}, {50}, {worked(60, seconds(0))}, kNow) == IdleTimes{{50, milliseconds::max()}});
}

TEST_CASE("samples of a process that is not listed may be the work of any and nothing is said") {
  for (const std::uint32_t unlisted : {0U, 70U}) {
    CHECK(idle_times({50}, {50}, {worked(unlisted, seconds(9))}, kNow).empty());
    CHECK_FALSE(idle_times({50}, {50}, {worked(unlisted, seconds(11))}, kNow).empty());
  }
}

TEST_CASE("times since the machine's start cannot be compared and nothing is said") {
  CHECK(idle_times({50}, {50}, {{50, 86'400'000'000}}, kNow).empty());
}

}  // namespace
}  // namespace cubind::worker
