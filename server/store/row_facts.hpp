// The rows of the store as messages (schemas/facts.proto), both ways: agents send them and tables keep them
// in this form. A message that does not convert throws Error(InvalidArgument) with the field path.
#pragma once

#include <string>
#include <string_view>

#include "schemas/agent.pb.h"
#include "server/store/rows.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {

void to_wire(const DriverVersion& from, v1::DriverVersion& to);
void to_wire(const TrialRow& from, v1::TrialHeader& to);
inline void to_wire(const BlockRow& from, v1::SampleBlock& to) { to = from.block(); }
inline void to_wire(const VerificationRow& from, v1::VerificationResult& to) { to = from.verification(); }
void to_wire(const ArtifactRow& from, v1::ArtifactInfo& to);
void to_wire(const ArtifactRow& from, v1::ArtifactUpload& to);
/// What does not depend on the question and the served artifact.
void to_wire(const RecordRow& from, v1::Provenance& to);
/// What outlives a lease.
void to_wire(const JobRow& from, v1::Job& to);

/// The parts that agents send. `field` names the message in errors.
TrialRow trial_from_wire(const v1::TrialHeader& from, const std::string& field);
ArtifactRow artifact_from_wire(const v1::ArtifactUpload& from, const std::string& field);

namespace store {

v1::StoredDeviceClass fact_of(const DeviceClass& row);
v1::StoredArtifact fact_of(const ArtifactRow& row);
v1::StoredTrial fact_of(const TrialRow& row);
inline BlockRow fact_of(BlockRow row) { return row; }
inline VerificationRow fact_of(VerificationRow row) { return row; }
v1::StoredRecord fact_of(const RecordRow& row);
v1::StoredJob fact_of(const JobRow& row);
v1::StoredWant fact_of(const WantRow& row);

DeviceClass row_of(const v1::StoredDeviceClass& fact);
ArtifactRow row_of(const v1::StoredArtifact& fact);
TrialRow row_of(v1::StoredTrial fact);
RecordRow row_of(const v1::StoredRecord& fact);
JobRow row_of(v1::StoredJob fact);
WantRow row_of(const v1::StoredWant& fact);

}  // namespace store
}  // namespace cubind
