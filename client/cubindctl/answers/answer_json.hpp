// An answer as JSON, with where it comes from.
#pragma once

#include "client/answer.hpp"
#include "client/cubindctl/terminal/json_output.hpp"

namespace cubind::ctl {

/// All of it: the launch plan, the artifact without its bytes, where it comes from, the rule's intervals.
OutputJson json_of(const Answer& answer);
/// The launches: everything that a program needs to launch the cubin.
OutputJson json_of(const LaunchPlan& plan);
OutputJson json_of(const v1::Provenance& provenance);
OutputJson json_of(const v1::ArtifactInfo& artifact);

}  // namespace cubind::ctl
