// How many questions were answered, how well and how fast: what the metrics say of GetVariant.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "plan/answer.hpp"

namespace cubind {

/// What an answer is counted under.
struct AnswerQuality {
  std::optional<Departure> worst;  // absent: exact
  Evidence evidence = Evidence::None;
  bool operator==(const AnswerQuality&) const = default;
};

AnswerQuality quality_of(const Match& match, Evidence evidence);

/// How a question came to its answer.
enum class AnswerPath : std::uint8_t {
  Repeated,  // an earlier reply was sent again
  LookedUp,  // from index and store, without waiting
  Waited,    // for a job, a compile or the daemon's agent
};

/// Thread-safe and without locks: threads count in stripes, so that hits on many cores do not wait for one
/// another.
class AnswerCounts {
 public:
  static constexpr std::size_t kQualities = 8 * 8;  // departures, or exact, times evidences
  static constexpr std::size_t kPaths = 3;
  static constexpr std::size_t kCodes = 17;  // of gRPC
  /// Upper bounds of the histogram, in seconds; a last bucket has what took longer.
  static constexpr std::array kBounds{1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 25e-3, 0.1, 1., 10., 60., 600.};

  struct Times {
    std::array<std::uint64_t, kBounds.size() + 1> buckets{};  // not cumulative
    double seconds = 0;
    std::uint64_t count = 0;
  };
  struct Sums {
    std::array<std::uint64_t, kQualities> answers{};  // by slot_of()
    std::array<Times, kPaths> times{};                // by AnswerPath
    std::array<std::uint64_t, kCodes> failures{};     // by gRPC's code
  };

  static std::size_t slot_of(AnswerQuality quality);
  static AnswerQuality quality_of_slot(std::size_t slot);

  void answered(AnswerQuality quality, AnswerPath path, std::chrono::nanoseconds took);
  void failed(std::size_t code);
  Sums sums() const;

 private:
  using Count = std::atomic<std::uint64_t>;
  struct alignas(64) Stripe {
    std::array<Count, kQualities> answers{};
    std::array<std::array<Count, kBounds.size() + 1>, kPaths> buckets{};
    std::array<Count, kPaths> nanoseconds{};
  };

  Stripe& own_stripe();

  std::array<Stripe, 16> stripes_{};
  std::array<Count, kCodes> failures_{};
};

}  // namespace cubind
