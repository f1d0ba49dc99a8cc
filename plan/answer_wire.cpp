#include "plan/answer_wire.hpp"

#include <string>
#include <utility>

#include "base/refuse.hpp"
#include "plan/wire_fields.hpp"

namespace cubind {
namespace {

// The messages number the enumerators from 1, since 0 is "unspecified".
constexpr int kWireOffset = 1;
static_assert(static_cast<int>(Departure::Bucket) + kWireOffset == v1::BUCKET);
static_assert(static_cast<int>(Departure::OtherDevice) + kWireOffset == v1::OTHER_DEVICE);
static_assert(static_cast<int>(Departure::Default) + kWireOffset == v1::DEFAULT_CONFIGURATION);
static_assert(static_cast<int>(Outcome::Correct) + kWireOffset == v1::CORRECT);
static_assert(static_cast<int>(Outcome::Unverified) + kWireOffset == v1::UNVERIFIED);
static_assert(static_cast<int>(OnMiss::Serve) == v1::SERVE && static_cast<int>(OnMiss::Fail) == v1::FAIL);
static_assert(static_cast<int>(Evidence::None) == v1::NONE);
static_assert(static_cast<int>(Evidence::Shipped) == v1::SHIPPED);
static_assert(static_cast<int>(Evidence::Replayed) == v1::REPLAYED);
static_assert(static_cast<int>(Evidence::Imported) == v1::IMPORTED);
static_assert(static_cast<int>(Evidence::Measured) == v1::MEASURED);

}  // namespace

v1::OnMiss to_wire(OnMiss on_miss) { return static_cast<v1::OnMiss>(on_miss); }
v1::Departure to_wire(Departure departure) {
  return static_cast<v1::Departure>(static_cast<int>(departure) + kWireOffset);
}
v1::Evidence to_wire(Evidence evidence) { return static_cast<v1::Evidence>(evidence); }
v1::Outcome to_wire(Outcome outcome) {
  return static_cast<v1::Outcome>(static_cast<int>(outcome) + kWireOffset);
}

bool is_fault(v1::Outcome outcome) {
  return v1::Outcome_IsValid(outcome) && is_fault(static_cast<Outcome>(outcome - kWireOffset));
}

OnMiss on_miss_from_wire(v1::OnMiss from, std::string_view field) {
  if (from < v1::SERVE || from > v1::FAIL) {
    refuse_unknown(field, "choice for a miss", from);
  }
  return static_cast<OnMiss>(from);
}

Departure departure_from_wire(v1::Departure from, std::string_view field) {
  if (!v1::Departure_IsValid(from) || from == v1::DEPARTURE_UNSPECIFIED) {
    refuse_unknown(field, "departure", from);
  }
  return static_cast<Departure>(from - kWireOffset);
}

Evidence evidence_from_wire(v1::Evidence from, std::string_view field) {
  if (!v1::Evidence_IsValid(from)) {
    refuse_unknown(field, "evidence", from);
  }
  return static_cast<Evidence>(from);
}

Outcome outcome_from_wire(v1::Outcome from, std::string_view field) {
  if (from < v1::CORRECT || from > v1::UNVERIFIED) {
    refuse_unknown(field, "outcome", from);
  }
  return static_cast<Outcome>(from - kWireOffset);
}

std::string bytes_of(const Digest& digest) { return std::string(digest.view()); }

Digest digest_from_wire(std::string_view from, std::string_view field) {
  if (const auto digest = Digest::from_bytes(from)) {
    return *digest;
  }
  refuse(field, "a digest has 32 bytes, this has " + std::to_string(from.size()));
}

void to_wire(const Match& from, google::protobuf::RepeatedField<int>& to) {
  to.Clear();
  for (const Departure departure : from.departures()) {
    to.Add(to_wire(departure));
  }
}

Match match_from_wire(const google::protobuf::RepeatedField<int>& from, std::string_view field) {
  Match match;
  for (int i = 0; i < from.size(); ++i) {
    match.add(departure_from_wire(static_cast<v1::Departure>(from.Get(i)), element(field, i)));
  }
  return match;
}

}  // namespace cubind
