#include "client/answer_cache.hpp"

#include <algorithm>
#include <iterator>

#include "client/request.hpp"

namespace cubind {

std::optional<Answer> AnswerCache::find(const std::string& key, const Problem& problem, const Match& accepted,
                                        std::chrono::steady_clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) {
    return std::nullopt;
  }
  const std::vector<Entries::iterator> candidates = found->second;
  for (const Entries::iterator entry : candidates) {
    if (entry->until && *entry->until <= now) {
      erase(entry);
      continue;
    }
    auto answer = entry->answer.for_problem(arranged_like(entry->answer.problem(), problem));
    if (answer && answer->match().within(accepted)) {
      entries_.splice(entries_.begin(), entries_, entry);
      return answer;
    }
  }
  return std::nullopt;
}

void AnswerCache::add(const std::string& key, const Answer& answer,
                      std::optional<std::chrono::steady_clock::time_point> until) {
  if (capacity_ == 0) {
    return;
  }
  const std::lock_guard lock(mutex_);
  // Two threads may have asked the same: the later answer stays.
  const std::vector<Entries::iterator> known = by_key_[key];
  for (const Entries::iterator entry : known) {
    if (entry->answer.problem() == answer.problem()) {
      erase(entry);
    }
  }
  if (entries_.size() == capacity_) {
    erase(std::prev(entries_.end()));
  }
  entries_.push_front({key, answer, until});
  by_key_[key].push_back(entries_.begin());
}

std::vector<Answer> AnswerCache::of_key(const std::string& key, std::size_t limit) const {
  const std::lock_guard lock(mutex_);
  std::vector<Answer> answers;
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) {
    return answers;
  }
  for (auto entry = found->second.rbegin(); entry != found->second.rend() && answers.size() < limit;
       ++entry) {
    answers.push_back((*entry)->answer);
  }
  return answers;
}

void AnswerCache::erase(Entries::iterator entry) {
  const auto key = by_key_.find(entry->key);
  std::erase(key->second, entry);
  if (key->second.empty()) {
    by_key_.erase(key);
  }
  entries_.erase(entry);
}

}  // namespace cubind
