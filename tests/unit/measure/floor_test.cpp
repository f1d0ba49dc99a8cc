#include "tuner/measure/floor.hpp"

#include <catch2/catch.hpp>

namespace cubind::measure {
namespace {

constexpr FloorRates kH200{.cc_major = 9,
                           .cc_minor = 0,
                           .sm_count = 132,
                           .sm_mhz = 1980,
                           .memory_mhz = 3201,
                           .memory_bus_bits = 6144};

TEST_CASE("the memory's peak follows from bus width and memory clock") {
  CHECK(peak_bytes_per_second(kH200) == Approx(4.917e12).epsilon(1e-3));
}

TEST_CASE("the peak of the instructions is known where SMs and their clock are") {
  CHECK(peak_flops_per_second(kH200) == Approx(132 * 1980e6 * peak_flops_per_clock(9, 0)));
  FloorRates unknown = kH200;
  unknown.sm_mhz = 0;
  CHECK(peak_flops_per_second(unknown) == 0);
}

TEST_CASE("cold reads have a floor of their bytes at the memory's peak less the margin") {
  const Floor floor = compute_floor({.min_read_bytes = 134'217'728}, kH200);
  CHECK(floor.read_us == Approx(27.3).epsilon(1e-2));
  CHECK(floor.us == Approx(0.9 * floor.read_us));
}

TEST_CASE("warm reads have no floor") {
  CHECK(compute_floor({.min_read_bytes = 134'217'728, .cold_l2 = false}, kH200).us == 0);
}

TEST_CASE("flops have a floor at the sampled clock") {
  const Floor fast = compute_floor({.flops = 1'000'000'000'000}, kH200);
  FloorRates slow_rates = kH200;
  slow_rates.sm_mhz = 990;
  CHECK(fast.flops_us == Approx(467.0).epsilon(1e-2));
  CHECK(compute_floor({.flops = 1'000'000'000'000}, slow_rates).us == Approx(2 * fast.us));
}

TEST_CASE("the larger floor decides") {
  const Floor floor = compute_floor({.flops = 1'000'000'000'000, .min_read_bytes = 134'217'728}, kH200);
  CHECK(floor.us == Approx(0.9 * floor.flops_us));
}

TEST_CASE("what is not known has no floor") {
  CHECK(compute_floor({.flops = 1'000'000'000, .min_read_bytes = 1'000'000}, {}).us == 0);
  CHECK(compute_floor({}, kH200).us == 0);
}

TEST_CASE("a sample below the floor by more than a tick is refused") {
  const Floor floor = compute_floor({.min_read_bytes = 134'217'728}, kH200);
  CHECK(is_below(floor, floor.us - 0.1, 0.032));
  CHECK_FALSE(is_below(floor, floor.us - 0.02, 0.032));
  CHECK_FALSE(is_below(floor, floor.us, 0));
}

TEST_CASE("a refusal names both figures and where the floor comes from") {
  const FloorWork work{.flops = 1'000'000'000, .min_read_bytes = 134'217'728};
  CHECK(describe(compute_floor(work, kH200), work, kH200, 10.0) ==
        "10.000 us is below the floor of 24.568 us (1.000 GFLOP take 0.467 us at 1980 MHz, 134.218 MB read "
        "take 27.298 us "
        "at 4917 GB/s, less 10 %)");
}

TEST_CASE("a block is refused for its least sample, and one without samples is not") {
  const FloorWork work{.min_read_bytes = 134'217'728};
  const Floor floor = compute_floor(work, kH200);
  const std::vector<double> samples = {30, floor.us - 0.1, 31};
  CHECK(impossible_sample(work, kH200, samples, 0.032) == describe(floor, work, kH200, samples[1]));
  CHECK(impossible_sample(work, kH200, samples, 0.2).empty());
  CHECK(impossible_sample(work, kH200, {}, 0).empty());
}

TEST_CASE("an unlisted architecture is never given a floor that a listed one would not keep") {
  CHECK(peak_flops_per_clock(13, 0) > peak_flops_per_clock(10, 0));
}

}  // namespace
}  // namespace cubind::measure
