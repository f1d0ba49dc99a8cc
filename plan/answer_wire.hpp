// Wishes on a miss, departures, evidence, outcomes and digests in messages, both ways. A message that does
// not convert throws Error(InvalidArgument) with the field path.
#pragma once

#include <string>
#include <string_view>

#include "base/digest.hpp"
#include "plan/answer.hpp"
#include "plan/on_miss.hpp"
#include "schemas/cubind.pb.h"

namespace cubind {

v1::OnMiss to_wire(OnMiss on_miss);
v1::Departure to_wire(Departure departure);
v1::Evidence to_wire(Evidence evidence);
v1::Outcome to_wire(Outcome outcome);
/// False for one that is unspecified or unknown.
bool is_fault(v1::Outcome outcome);
void to_wire(const Match& from, google::protobuf::RepeatedField<int>& to);

OnMiss on_miss_from_wire(v1::OnMiss from, std::string_view field);
/// Unspecified is refused.
Departure departure_from_wire(v1::Departure from, std::string_view field);
Evidence evidence_from_wire(v1::Evidence from, std::string_view field);
/// Unspecified is refused.
Outcome outcome_from_wire(v1::Outcome from, std::string_view field);
Match match_from_wire(const google::protobuf::RepeatedField<int>& from, std::string_view field);

/// The 32 bytes, as a message holds them.
std::string bytes_of(const Digest& digest);
/// Exactly 32 bytes.
Digest digest_from_wire(std::string_view from, std::string_view field);

}  // namespace cubind
