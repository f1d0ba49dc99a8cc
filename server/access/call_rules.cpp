#include "server/access/call_rules.hpp"

#include <array>
#include <cstddef>

namespace cubind {
namespace {

// A question of a reader is answered and starts nothing: server/service/variant_call sees to that.
constexpr std::array kRules{
    CallRule{Call::GetVariant, "GetVariant", CallerRole::Reader},
    CallRule{Call::ReportComparison, "ReportComparison", CallerRole::Tuner, false, /*changes=*/true},
    CallRule{Call::GetArtifact, "GetArtifact", CallerRole::Reader, /*for_agents=*/true},
    CallRule{Call::Tune, "Tune", CallerRole::Tuner, false, /*changes=*/true},
    CallRule{Call::WatchJob, "WatchJob", CallerRole::Reader},
    CallRule{Call::ListKernels, "ListKernels", CallerRole::Reader},
    CallRule{Call::CheckKernel, "CheckKernel", CallerRole::Tuner},
    CallRule{Call::DefineKernel, "DefineKernel", CallerRole::Tuner, false, /*changes=*/true},
    CallRule{Call::Evaluate, "Evaluate", CallerRole::Tuner, false, /*changes=*/true},
    CallRule{Call::ListDevices, "ListDevices", CallerRole::Reader},
    CallRule{Call::ListJobs, "ListJobs", CallerRole::Reader},
    CallRule{Call::CancelJob, "CancelJob", CallerRole::Tuner, false, /*changes=*/true},
    CallRule{Call::ForgetFaults, "ForgetFaults", CallerRole::Tuner, false, /*changes=*/true},
    CallRule{Call::ExportTable, "ExportTable", CallerRole::Reader},
    CallRule{Call::ImportTable, "ImportTable", CallerRole::Publisher, false, /*changes=*/true},
    CallRule{Call::GetStatus, "GetStatus", CallerRole::Reader},
    CallRule{Call::ListWanted, "ListWanted", CallerRole::Reader},
    CallRule{Call::ListRecords, "ListRecords", CallerRole::Reader},
    CallRule{Call::Backup, "Backup", CallerRole::Admin},
    CallRule{Call::Serve, "Serve", CallerRole::Agent, /*for_agents=*/true, /*changes=*/true},
    CallRule{Call::PutArtifact, "PutArtifact", CallerRole::Agent, /*for_agents=*/true, /*changes=*/true},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kRules.size(); ++i) {
    if (static_cast<std::size_t>(kRules.at(i).call) != i) {
      return false;
    }
  }
  return true;
}
static_assert(in_order());

}  // namespace

std::span<const CallRule> call_rules() { return kRules; }

const CallRule& rule_of(Call call) { return kRules.at(static_cast<std::size_t>(call)); }

}  // namespace cubind
