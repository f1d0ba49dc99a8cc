#include "server/lookup/revisions.hpp"

namespace cubind {

CarryOver Revisions::for_question(const Question& question) {
  return [this, &question](const RecordRow& record, const DeviceFacts& facts) {
    return carried(question, record, facts);
  };
}

std::optional<CarriedOver> Revisions::carried(const Question& question, const RecordRow& record,
                                              const DeviceFacts& facts) {
  const RevisedRecord key{question.spec_revision, record.id};
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end()) {
      return found->second;
    }
  }
  auto carried = carry_over(*question.spec, record, facts);
  const std::lock_guard lock(mutex_);
  if (known_.size() >= capacity_) {
    known_.clear();
  }
  known_.emplace(key, carried);
  return carried;
}

}  // namespace cubind
