// cubindctl's documents. Every number that has a unit names it: time_us, sm_mhz, size_bytes. Times are
// microseconds where the name says _us, and so on; counts (samples, registers) and values of dims and
// tunables stand alone. docs/cli.md describes the documents.
#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plan/problem.hpp"
#include "schemas/cubind.pb.h"

namespace cubind::ctl {

using OutputJson = nlohmann::ordered_json;

/// {"N": 4096, "D": 4096, "T": "bf16"}.
OutputJson json_of(const Problem& problem);
OutputJson json_of(const Configuration& configuration);
OutputJson json_of(const v1::Generation& generation);
OutputJson strings(const google::protobuf::RepeatedPtrField<std::string>& from);

/// "running", "waiting_for_idle_gpu".
std::string state_name(v1::Job::State state);
/// "measured"; of a message whose value may be newer than this program: its number.
std::string evidence_name(v1::Evidence evidence);
/// "wrong_result".
std::string outcome_name(v1::Outcome outcome);
/// ASCII letters alone.
std::string lower_case(std::string name);

/// The document, indented, on standard output.
void print_json(const OutputJson& document);

}  // namespace cubind::ctl
