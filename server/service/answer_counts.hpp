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

/// The work that was done once for an answer's artifact. 0: its time is not known.
struct SparedWork {
  bool is_new = false;  // to a caller that would do it: it lacked the artifact, and misses start work for it
  std::uint32_t compile_ms = 0;
  std::uint32_t tuning_ms = 0;
  bool operator==(const SparedWork&) const = default;
};

/// What an answer is counted under.
struct AnswerQuality {
  std::optional<Departure> worst;  // absent: exact
  Evidence evidence = Evidence::None;
  SparedWork spared = {};
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
  /// By answers that did not wait.
  struct Spared {
    std::uint64_t answers = 0, timed = 0, compile_ms = 0, tuning_ms = 0;
  };
  struct Sums {
    std::array<std::uint64_t, kQualities> answers{};  // by slot_of()
    std::array<Times, kPaths> times{};                // by AnswerPath
    std::array<std::uint64_t, kCodes> failures{};     // by gRPC's code
    Spared spared;
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
    Count spared{0}, spared_timed{0}, spared_compile_ms{0}, spared_tuning_ms{0};
  };

  Stripe& own_stripe();

  std::array<Stripe, 16> stripes_{};
  std::array<Count, kCodes> failures_{};
};

}  // namespace cubind
