// What an agent says that it has, in its hello and when its devices change. Errors name the field.
#pragma once

#include <string>
#include <vector>

#include "schemas/agent.pb.h"
#include "server/jobs/agent.hpp"

namespace cubind {

AgentProfile profile_from_wire(const v1::Hello& hello);
std::vector<OfferedDevice> devices_from_wire(
    const google::protobuf::RepeatedPtrField<v1::OfferedDevice>& devices, const std::string& field);

}  // namespace cubind
