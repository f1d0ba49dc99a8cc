// Limits what one caller may hold of the daemon at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace cubind {

enum class Held : std::uint8_t {
  Calls,     // running, waiting, or with an unread answer
  Bytes,     // of requests, uploads and unread answers
  Checks,    // CheckKernel
  Jobs,      // queued and running, that the caller started
  Compiles,  // queued and running, that the caller's misses started
};

struct CallerLimit {
  Held what;
  std::uint64_t most;
  std::string_view unit;
  std::string_view remedy;
};

/// In the order of the enumerators. docs/team.md lists them.
inline constexpr std::array kCallerLimits{
    CallerLimit{Held::Calls, 4096, "open calls", "end some, or read their answers"},
    CallerLimit{Held::Bytes, std::uint64_t{256} << 20, "bytes in open calls",
                "end some uploads, or read what was asked for"},
    CallerLimit{Held::Checks, 16, "checks of kernels", "wait until some have ended"},
    CallerLimit{Held::Jobs, 5000, "jobs", "wait until some have ended, or cancel some"},
    CallerLimit{Held::Compiles, 1000, "compiles for its misses", "wait until some have ended"},
};

/// Counts by caller. Thread-safe; outlives its holds.
class CallerLimits {
  using Counts = std::array<std::uint64_t, kCallerLimits.size()>;
  using Entry = std::pair<const std::string, Counts>;  // of a caller

 public:
  /// Part of a count, until it is destroyed.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept;
    Hold& operator=(Hold&& other) noexcept;
    ~Hold();

    /// Throws like take(); the count then stays unchanged.
    void add(std::uint64_t amount);

   private:
    friend class CallerLimits;
    Hold(CallerLimits& limits, Entry& entry, Held what) : limits_(&limits), entry_(&entry), what_(what) {}

    CallerLimits* limits_ = nullptr;  // null if it holds nothing
    Entry* entry_ = nullptr;
    Held what_ = Held::Calls;
    std::uint64_t amount_ = 0;
  };

  /// Throws ResourceExhausted if the caller would exceed its limit. The daemon's work, whose caller is empty,
  /// has no limit.
  Hold take(const std::string& caller, Held what, std::uint64_t amount = 1);
  std::uint64_t held(const std::string& caller, Held what) const;

 private:
  Entry& entry_of(const std::string& caller);
  void add(Entry& entry, Held what, std::uint64_t amount);
  void remove(Entry& entry, Held what, std::uint64_t amount);

  mutable std::mutex mutex_;
  // Guarded by mutex_. An entry stays where it is: there are as many as names of users and tokens.
  std::unordered_map<std::string, Counts> counts_;
};

}  // namespace cubind
