// A cache of answers by question. Their rules answer further problems.
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "client/answer.hpp"

namespace cubind {

/// Holds at most `capacity` answers and evicts the least recently used one. Safe on many threads.
class AnswerCache {
 public:
  explicit AnswerCache(std::size_t capacity) : capacity_(capacity) {}

  /// The answer for `problem`, if a cached answer to a question with the same key (question_key()) covers it
  /// within the accepted departures and is valid at `now`. `problem` is as the caller wrote it.
  std::optional<Answer> find(const std::string& key, const Problem& problem, const Match& accepted,
                             std::chrono::steady_clock::time_point now);

  /// `until`: when the answer stops covering its bucket; absent: never.
  void add(const std::string& key, const Answer& answer,
           std::optional<std::chrono::steady_clock::time_point> until);

  /// The answers to questions of this key, the most recently used first, at most `limit`.
  std::vector<Answer> of_key(const std::string& key, std::size_t limit) const;

 private:
  struct Entry {
    std::string key;
    Answer answer;
    std::optional<std::chrono::steady_clock::time_point> until;
  };
  using Entries = std::list<Entry>;

  void erase(Entries::iterator entry);

  const std::size_t capacity_;
  mutable std::mutex mutex_;
  Entries entries_;  // guarded; most recently used first
  std::unordered_map<std::string, std::vector<Entries::iterator>> by_key_;  // guarded
};

}  // namespace cubind
