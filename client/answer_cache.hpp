// Answers by question, kept for their rules.
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

/// At most `capacity` answers; the least recently used goes first. Safe on many threads.
class AnswerCache {
 public:
  explicit AnswerCache(std::size_t capacity) : capacity_(capacity) {}

  /// The answer for `problem` by an answer to a question of the same key (question_key()), if one covers it
  /// within the accepted departures and holds at `now`. `problem` is as the caller wrote it.
  std::optional<Answer> find(const std::string& key, const Problem& problem, const Match& accepted,
                             std::chrono::steady_clock::time_point now);

  /// `until`: when the answer stops answering for its bucket; absent: never.
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
