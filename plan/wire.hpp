// Conversions between the domain structs and their messages, both ways. A message that does not convert
// throws Error(InvalidArgument) with the field path, "problem.types[0].type: 'fp12' is not a type (known:
// f64, f32, ...)".
#pragma once

#include <string_view>

#include "plan/launch_plan.hpp"
#include "plan/problem.hpp"
#include "schemas/cubind.pb.h"

namespace cubind {

void to_wire(const Problem& from, v1::Problem& to);
void to_wire(const Configuration& from, v1::Configuration& to);
void to_wire(const LaunchPlan& from, v1::LaunchPlan& to);
void to_wire(const LaunchTemplate& from, v1::LaunchTemplate& to);

Problem problem_from_wire(const v1::Problem& from, std::string_view field);
Configuration configuration_from_wire(const v1::Configuration& from, std::string_view field);
LaunchPlan plan_from_wire(const v1::LaunchPlan& from, std::string_view field);

/// The constraints, launches, static shared memory and device constants of a rule. The service adds intervals
/// and the problems with records of their own.
void to_wire(const PlanTemplate& from, const DeviceConstants& device, v1::Rule& to);

using DeviceConstantsWire = google::protobuf::RepeatedPtrField<v1::NamedValue>;
void to_wire(const DeviceConstants& from, DeviceConstantsWire& to);
/// `field` is that of the message that holds them, as `device_constants`.
DeviceConstants device_constants_from_wire(const DeviceConstantsWire& from, std::string_view field);

v1::Role to_wire(Role role);

/// "bf16" and its other spellings; the error lists the known ones.
DType dtype_from_wire(std::string_view from, std::string_view field);

}  // namespace cubind
