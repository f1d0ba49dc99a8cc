#include "tuner/measure/statistics.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"

namespace cubind {
namespace {

const std::vector<double> kTen = {10.1, 10.3, 9.9, 10.0, 10.2, 10.4, 9.8, 10.1, 12.9, 10.0};

BootstrapOptions seeded(std::string_view seed) {
  BootstrapOptions options;
  options.seed = Digest::of(seed);
  return options;
}

TEST_CASE("the median of an odd number of samples is the middle one and ignores an outlier") {
  CHECK(median(std::vector<double>{3, 1000, 2}) == 3);
}

TEST_CASE("the median of an even number of samples is the mean of the middle two") {
  CHECK(median(std::vector<double>{4, 1, 3, 2}) == 2.5);
}

TEST_CASE("a trimmed mean leaves out a sixth at both ends") {
  CHECK(trimmed_mean(std::vector{2.0, 9.0, 1.0, 3.0, 0.0, 2.0}) == Approx(2.0));
  CHECK(trimmed_mean(std::vector{1.0, 6.0}) == Approx(3.5));
}

TEST_CASE("no samples have no median") { CHECK_THROWS_AS(median({}), Error); }

TEST_CASE("a bootstrap interval is pinned by its seed") {
  const ConfidenceInterval interval = bootstrap_interval(kTen, seeded("job"));
  CHECK(interval == bootstrap_interval(kTen, seeded("job")));
  CHECK(interval.low == Approx(9.95));
  CHECK(interval.high == Approx(10.3));
}

TEST_CASE("a bootstrap interval holds the median and narrows with more samples") {
  std::vector<double> many;
  for (int i = 0; i < 10; ++i) {
    many.insert(many.end(), kTen.begin(), kTen.end());
  }
  const ConfidenceInterval few = bootstrap_interval(kTen, seeded("job"));
  const ConfidenceInterval more = bootstrap_interval(many, seeded("job"));
  CHECK(few.low <= median(kTen));
  CHECK(few.high >= median(kTen));
  CHECK(more.high - more.low < few.high - few.low);
}

TEST_CASE("one sample is its own interval") {
  CHECK(bootstrap_interval(std::vector<double>{7}, seeded("x")) == ConfidenceInterval{7, 7});
}

TEST_CASE("a ratio of samples from different rounds is refused") {
  CHECK_THROWS_AS(paired_ratio(kTen, std::vector<double>{1}, 0.99), Error);
}

TEST_CASE("a paired ratio cancels the drift of the rounds and bears outliers in a fifth of them") {
  std::vector<double> slow, fast;
  for (int round = 0; round < 20; ++round) {
    const double drift = round < 12 ? 1.0 : 1.3;  // a ratio of medians would compare the two levels
    fast.push_back(10 * drift * (round % 5 == 0 ? 1.5 : 1 + 0.001 * (round % 3)));
    slow.push_back(10.2 * drift);
  }
  const PairedRatio paired = paired_ratio(slow, fast, 0.99);
  CHECK(paired.ratio == Approx(1.02).margin(0.003));
  CHECK(paired.interval.low < paired.ratio);
  CHECK(paired.interval.high == Approx(1.02).margin(0.001));
}

TEST_CASE("a paired ratio of few rounds has their whole range as interval") {
  const PairedRatio paired = paired_ratio(std::vector<double>{2, 3, 4}, std::vector<double>{1, 1, 1}, 0.99);
  CHECK(paired.ratio == Approx(3).margin(0.1));
  CHECK(paired.interval == ConfidenceInterval{2, 4});
}

TEST_CASE("the interval of a paired ratio is wider at a higher confidence") {
  std::vector<double> ones(kTen.size(), 1);
  const PairedRatio likely = paired_ratio(kTen, ones, 0.9), sure = paired_ratio(kTen, ones, 0.99);
  CHECK(likely.ratio == sure.ratio);
  CHECK(sure.interval.low < likely.interval.low);
  CHECK(sure.interval.high > likely.interval.high);
}

TEST_CASE("a time that the timer reads as zero has a ratio") {
  const PairedRatio paired = paired_ratio(std::vector<double>{0, 0}, std::vector<double>{0, 0}, 0.99);
  CHECK(paired.ratio == 1);
}

}  // namespace
}  // namespace cubind
