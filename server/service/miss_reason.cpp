#include "server/service/miss_reason.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "base/text.hpp"

namespace cubind {
namespace {

std::string without_device(const JobEvent& job, const AgentProfiles& agents) {
  std::string no_compiler = no_compiler_because(agents, job.job.question.device_class, job.needs);
  return no_compiler.empty() ? not_offered_because(job.device, agents) : no_compiler;
}

}  // namespace

std::string not_offered_because(const std::string& device, const AgentProfiles& agents) {
  std::set<std::string> offered;
  for (const OfferedDevice& one : devices_of(agents)) {
    offered.insert(one.device.label);
  }
  if (!offered.empty()) {
    return "no agent offers " + device + " for measurements (offered: " + join(offered, ", ") + ")";
  }
  return no_gpu_because(agents);
}

std::string shortfall_of(const Question& question, const AnswerCandidate* best) {
  if (!best || !is_of_bucket(*best)) {
    return "nothing of its bucket was measured on " + question.device.label;
  }
  if (best->match.has(Departure::OtherRevision)) {
    return "the kernel's source has changed since it was measured";
  }
  if (best->match.has(Departure::Stale)) {
    return "stale: " + stale_because(question, *best->record, true);
  }
  return best->match.exact() ? ""
                             : "of its bucket " + to_string(best->record->question.problem) + " was measured";
}

std::string obstacle_of(const JobEvent& job, const AgentProfiles& agents) {
  switch (job.job.state) {
    case v1::Job::NO_DEVICE:
      return without_device(job, agents) + "; the job begins as soon as one does";
    case v1::Job::WAITING_FOR_IDLE_GPU:
      return (job.waits_because.empty() ? "other processes use the GPU" : job.waits_because) +
             "; the job goes on when the GPU is idle";
    case v1::Job::FAILED:
      return "the job failed: " + job.job.shown().error();
    case v1::Job::CANCELLED:
      return "the job was cancelled";
    default:
      break;
  }
  return job.refusal.empty()
             ? ""
             : "the job's results could not be stored, it is repeated when there is room: " + job.refusal;
}

std::string obstacle_of(const CompileAttempts& compiles, const Resolution& resolution) {
  const std::string wanted = resolution.outdated
                                 ? "the cubin is from an earlier toolchain, and one of the current toolchain "
                                 : "a better configuration ";
  const std::string& why = compiles.barred.empty() ? compiles.error : compiles.barred;
  if (!why.empty()) {
    return wanted + "was not compiled: " + why;
  }
  if (!resolution.compile) {
    return "";
  }
  if (!compiles.refusal.empty()) {
    return wanted + "was compiled by job " + compiles.job + " and could not be stored: " + compiles.refusal;
  }
  return wanted + (resolution.outdated ? "is not compiled yet: " : "has no cubin yet: ") +
         (compiles.job.empty() ? "no agent compiles it" : "job " + compiles.job + " compiles it");
}

}  // namespace cubind
