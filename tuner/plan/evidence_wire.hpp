// Evidence in messages, both ways. A message that does not convert throws Error(InvalidArgument) with the
// field path; `field` is the message's own.
#pragma once

#include <string_view>
#include <vector>

#include "schemas/agent.pb.h"
#include "schemas/cubind.pb.h"
#include "tuner/plan/evidence.hpp"

namespace cubind {

void to_wire(const EntryResources& from, v1::EntryResources& to);
void to_wire(const BlockConditions& from, v1::ThrottleInfo& to);
/// The timing of a provenance: its other fields stay as they are.
void to_wire(const Timing& from, v1::Provenance& to);
void to_wire(const LibraryComparison& from, v1::LibraryComparison& to);
/// Leaves out the digest, for which the message has no field.
void to_wire(const VerificationSummary& from, v1::VerificationSummary& to);
/// Samples, conditions and the time that they were judged against.
void to_wire(const SampleBlock& from, v1::SampleBlock& to);
/// All but trial and digest.
void to_wire(const VerificationResult& from, v1::VerificationResult& to);

std::vector<EntryResources> resources_from_wire(
    const google::protobuf::RepeatedPtrField<v1::EntryResources>& from);
Timing timing_from_wire(const v1::Provenance& from);
VerificationSummary verification_from_wire(const v1::VerificationSummary& from, std::string_view field);
/// Refuses what breaks a rule of library_comparison.hpp.
LibraryComparison comparison_from_wire(const v1::LibraryComparison& from, std::string_view field);
/// Those of an answer, as the daemon has checked them.
std::vector<LibraryComparison> comparisons_from_wire(const v1::Provenance& from);
SampleBlock block_from_wire(const v1::SampleBlock& from);
VerificationResult verification_from_wire(const v1::VerificationResult& from, std::string_view field);

}  // namespace cubind
