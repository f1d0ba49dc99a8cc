// The parts of a measurement: samples and the conditions under which they were taken, verifications, and the
// summaries of both that a record keeps of its winner. Each is its message, wherever it is held.
#pragma once

#include <concepts>

#include "plan/answer_wire.hpp"
#include "plan/wire.hpp"
#include "schemas/facts.pb.h"

namespace cubind::v1 {

/// Of facts: by their bytes.
template <std::derived_from<google::protobuf::Message> Fact>
bool operator==(const Fact& a, const Fact& b) {
  return a.SerializeAsString() == b.SerializeAsString();
}

}  // namespace cubind::v1

namespace cubind {

/// Fields of TrialHeader from this number on are facts that agents measure; the walk prints them.
inline constexpr int kFirstTrialFact = v1::TrialHeader::kMeasuredAsFieldNumber + 1;

using v1::Conditions;
using v1::DeviceFacts;
using v1::EntryResources;
using v1::LibraryComparison;
using v1::SampleBlock;
using v1::Timing;
using v1::VerificationResult;
using v1::VerificationSummary;

}  // namespace cubind
