// The only table of the roles that may make each call.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "access/role.hpp"

namespace cubind {

/// The rpcs of schemas/cubind.proto and schemas/agent.proto.
enum class Call : std::uint8_t {
  GetVariant,
  ReportComparison,
  GetArtifact,
  Tune,
  WatchJob,
  ListKernels,
  CheckKernel,
  DefineKernel,
  Evaluate,
  ListDevices,
  ListJobs,
  CancelJob,
  ForgetFaults,
  ExportTable,
  ImportTable,
  GetStatus,
  ListWanted,
  ListRecords,
  Backup,
  Serve,
  PutArtifact,
};

struct CallRule {
  Call call;
  std::string_view name;  // of the rpc
  CallerRole least;
  bool for_agents = false;  // agents may call it too
  bool changes = false;     // changes what others get, so the audit log has it
};

/// In the order of the enumerators.
std::span<const CallRule> call_rules();
const CallRule& rule_of(Call call);

}  // namespace cubind
