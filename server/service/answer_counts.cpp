#include "server/service/answer_counts.hpp"

#include <algorithm>
#include <thread>

namespace cubind {
namespace {

constexpr std::size_t kExact = 7;  // no departure has this number
constexpr std::size_t kEvidences = 8;

void add(std::atomic<std::uint64_t>& count, std::uint64_t more = 1) {
  count.fetch_add(more, std::memory_order_relaxed);
}

std::uint64_t value(const std::atomic<std::uint64_t>& count) { return count.load(std::memory_order_relaxed); }

}  // namespace

AnswerQuality quality_of(const Match& match, Evidence evidence) {
  return {match.exact() ? std::nullopt : std::optional(match.departures().back()), evidence, {}};
}

std::size_t AnswerCounts::slot_of(AnswerQuality quality) {
  const std::size_t worst = quality.worst ? static_cast<std::size_t>(*quality.worst) : kExact;
  return worst * kEvidences + static_cast<std::size_t>(quality.evidence);
}

AnswerQuality AnswerCounts::quality_of_slot(std::size_t slot) {
  AnswerQuality quality{std::nullopt, static_cast<Evidence>(slot % kEvidences), {}};
  if (slot / kEvidences != kExact) {
    quality.worst = static_cast<Departure>(slot / kEvidences);
  }
  return quality;
}

void AnswerCounts::answered(AnswerQuality quality, AnswerPath path, std::chrono::nanoseconds took) {
  const double seconds = std::chrono::duration<double>(took).count();
  const auto bucket = std::ranges::lower_bound(kBounds, seconds) - kBounds.begin();
  const auto row = static_cast<std::size_t>(path);
  Stripe& stripe = own_stripe();
  add(stripe.answers[slot_of(quality)]);
  add(stripe.buckets[row][static_cast<std::size_t>(bucket)]);
  add(stripe.nanoseconds[row], static_cast<std::uint64_t>(took.count()));
  if (const SparedWork& spared = quality.spared; spared.is_new && path != AnswerPath::Waited) {
    add(stripe.spared);
    add(stripe.spared_timed, spared.compile_ms + spared.tuning_ms > 0 ? 1 : 0);
    add(stripe.spared_compile_ms, spared.compile_ms);
    add(stripe.spared_tuning_ms, spared.tuning_ms);
  }
}

void AnswerCounts::failed(std::size_t code) {
  if (code < kCodes) {
    add(failures_[code]);
  }
}

AnswerCounts::Sums AnswerCounts::sums() const {
  Sums sums;
  for (const Stripe& stripe : stripes_) {
    sums.spared.answers += value(stripe.spared);
    sums.spared.timed += value(stripe.spared_timed);
    sums.spared.compile_ms += value(stripe.spared_compile_ms);
    sums.spared.tuning_ms += value(stripe.spared_tuning_ms);
    for (std::size_t slot = 0; slot < kQualities; ++slot) {
      sums.answers[slot] += value(stripe.answers[slot]);
    }
    for (std::size_t path = 0; path < kPaths; ++path) {
      Times& times = sums.times[path];
      for (std::size_t bucket = 0; bucket < times.buckets.size(); ++bucket) {
        const std::uint64_t count = value(stripe.buckets[path][bucket]);
        times.buckets[bucket] += count;
        times.count += count;
      }
      times.seconds += static_cast<double>(value(stripe.nanoseconds[path])) * 1e-9;
    }
  }
  std::ranges::transform(failures_, sums.failures.begin(), value);
  return sums;
}

// A thread's id is an address: its low bits are the same for all.
AnswerCounts::Stripe& AnswerCounts::own_stripe() {
  constexpr std::size_t kMixer = 0x9e3779b97f4a7c15;
  const std::size_t hash = std::hash<std::thread::id>()(std::this_thread::get_id()) * kMixer;
  return stripes_[(hash >> 60) % stripes_.size()];
}

}  // namespace cubind
