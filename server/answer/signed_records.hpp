// The signed fingerprints of the bundle that a daemon serves, by record.
#pragma once

#include <compare>
#include <map>

#include "server/store/rows.hpp"
#include "trust/fingerprint.hpp"

namespace cubind {

class SignedRecords {
 public:
  void add(const RecordRow& record, SignedLine line) { lines_.insert_or_assign(Id(record), std::move(line)); }
  /// Null if the record is not signed.
  const SignedLine* find(const RecordRow& record) const {
    const auto found = lines_.find(Id(record));
    return found == lines_.end() ? nullptr : &found->second;
  }

 private:
  /// Distinguishes the records of a bundle; the trial covers driver branch and toolchain.
  struct Id {
    explicit Id(const RecordRow& record)
        : key(record.key), trial(record.trial), evidence(record.evidence), provisional(record.provisional) {}
    Digest key, trial;
    Evidence evidence;
    bool provisional;
    auto operator<=>(const Id&) const = default;
  };
  std::map<Id, SignedLine> lines_;
};

}  // namespace cubind
