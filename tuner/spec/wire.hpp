// Conversions between the structs of this folder and their messages, both ways. A message that does not
// convert throws Error(InvalidArgument) with the field path.
#pragma once

#include <string_view>

#include "plan/answer_wire.hpp"
#include "plan/wire.hpp"
#include "schemas/agent.pb.h"
#include "schemas/cubind.pb.h"
#include "tuner/spec/device_class.hpp"
#include "tuner/spec/kernel_spec.hpp"
#include "tuner/spec/keys.hpp"

namespace cubind {

void to_wire(const Policy& from, v1::Policy& to);
void to_wire(const Numerics& from, v1::Numerics& to);
void to_wire(const ArgumentSpec& from, v1::Argument& to);

void to_wire(const SpecBundle& from, v1::SpecBundle& to);
void to_wire(const ToolchainIdentity& from, v1::ToolchainIdentity& to);

/// Flush method 0 becomes the default; any other than that is refused.
Policy policy_from_wire(const v1::Policy& from, std::string_view field = "policy");
/// An invariant without its dim is refused.
Numerics numerics_from_wire(const v1::Numerics& from, std::string_view field = "numerics");
/// Replaces `content` by `zstd_content`.
void compress_files(google::protobuf::RepeatedPtrField<v1::SourceFile>& files);
/// Files as they are or compressed. Throws ResourceExhausted before it inflates more than 64 MiB.
SpecBundle bundle_from_wire(const v1::SpecBundle& from);
ToolchainIdentity toolchain_from_wire(const v1::ToolchainIdentity& from,
                                      std::string_view field = "toolchain");

}  // namespace cubind
