// Replies as JSON. Every number that has a unit names it: time_us, sm_mhz, size_bytes. Times are microseconds
// where the name says _us, and so on; counts (samples, registers) and values of dims and tunables stand
// alone. docs/cli.md describes the documents.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "client/answer.hpp"
#include "schemas/cubind.pb.h"

namespace cubind::ctl {

using OutputJson = nlohmann::ordered_json;

/// {"N": 4096, "D": 4096, "T": "bf16"}.
OutputJson json_of(const Problem& problem);
OutputJson json_of(const Configuration& configuration);
/// {"launches": [...]}: everything that a program needs to launch the cubin.
OutputJson json_of(const LaunchPlan& plan);
/// All of it: the launch plan, the artifact without its bytes, where it comes from, the rule's intervals.
OutputJson json_of(const Answer& answer);
OutputJson json_of(const v1::Provenance& provenance);
OutputJson json_of(const v1::ArtifactInfo& artifact);
OutputJson json_of(const v1::Job& job);
/// A job with its winner, where it has one.
OutputJson json_of(const v1::TuneEvent& event);
/// Of an event with a winner and `before`: of the time, and whether another configuration won.
double change_percent(const v1::TuneEvent& event);
bool winner_changed(const v1::TuneEvent& event);
OutputJson json_of(const v1::Kernel& kernel);
OutputJson json_of(const v1::CheckKernelReply& reply);
OutputJson json_of(const v1::CheckKernelReply::CompiledConfiguration& compiled);
OutputJson json_of(const v1::DeviceClass& device);
OutputJson json_of(const v1::GetStatusReply& status);
OutputJson json_of(const v1::Generation& generation);
/// {"correct": 11, "runtime": 1}.
OutputJson json_of(const google::protobuf::RepeatedPtrField<v1::OutcomeCount>& counts);

/// "running", "waiting_for_idle_gpu".
std::string state_name(v1::Job::State state);
/// "measured"; of a message whose value may be newer than this program: its number.
std::string evidence_name(v1::Evidence evidence);
/// "wrong_result"; likewise.
std::string outcome_name(v1::Outcome outcome);
/// Lower-case hex.
std::string hex(const std::string& bytes);

/// The document, indented, on standard output.
void print_json(const OutputJson& document);

}  // namespace cubind::ctl
