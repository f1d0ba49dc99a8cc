// Caches carry_over(): recomputing a trial's key costs more than the rest of a lookup, and the result changes
// only with the spec.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "server/lookup/lookup.hpp"

namespace cubind {

/// Thread-safe. Clears the cache when it reaches `capacity`.
class Revisions {
 public:
  explicit Revisions(std::size_t capacity = 100'000) : capacity_(capacity) {}

  /// The argument of rank_candidates(); refers to this object and the question.
  CarryOver for_question(const Question& question);

 private:
  using RevisedRecord = std::pair<std::uint64_t, std::int64_t>;  // revision of the spec, id of the record
  std::optional<CarriedOver> carried(const Question& question, const RecordRow& record,
                                     const DeviceFacts& facts);

  const std::size_t capacity_;
  std::mutex mutex_;
  std::map<RevisedRecord, std::optional<CarriedOver>> known_;  // guarded by mutex_
};

}  // namespace cubind
