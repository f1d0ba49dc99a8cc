// Jobs, kernels, devices and the daemon's state as JSON.
#pragma once

#include "client/cubindctl/terminal/json_output.hpp"

namespace cubind::ctl {

OutputJson json_of(const v1::Job& job);
/// A job with its winner, where it has one.
OutputJson json_of(const v1::TuneEvent& event);
/// The change of the time, and whether another configuration won. The event has a winner and `before`.
double change_percent(const v1::TuneEvent& event);
bool winner_changed(const v1::TuneEvent& event);
/// {"correct": 11, "runtime": 1}.
OutputJson json_of(const google::protobuf::RepeatedPtrField<v1::OutcomeCount>& counts);
OutputJson json_of(const v1::Kernel& kernel);
OutputJson json_of(const v1::CheckKernelReply& reply);
OutputJson json_of(const v1::DeviceClass& device);
OutputJson json_of(const v1::GetStatusReply& status);

}  // namespace cubind::ctl
