#include "server/service/no_answer.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "server/answer/freshness.hpp"

namespace cubind {
namespace {

std::string driver_text(const DriverVersion& driver) {
  return "driver " + (driver.version.empty() ? std::string("of the caller") : driver.version) + " (CUDA " +
         std::to_string(driver.cuda / 1000) + "." + std::to_string(driver.cuda % 1000 / 10) + ")";
}

/// A driver that is too old for the cubins that there are or would be.
void refuse_old_driver(const Question& question, const Resolution& resolution, const AgentProfiles& agents) {
  if (!question.driver || (!resolution.refused_toolchain && !resolution.compile) ||
      current_toolchain(agents,
                        toolchain_need(*question.spec, question.is_foreign, "", question.driver->cuda))) {
    return;
  }
  const auto newest = current_toolchain(agents, kernel_need(question));
  const std::string toolchain = resolution.refused_toolchain.value_or(newest ? newest->name : "");
  if (toolchain.empty()) {
    return;
  }
  const auto& triton = question.spec->triton;
  throw Error(ErrorCode::FailedPrecondition, "device.driver",
              driver_text(*question.driver) + " cannot load the cubins of " + toolchain +
                  ": install a driver for CUDA " +
                  (triton ? triton->ptxas + ", that of its ptxas"
                          : toolchain.substr(toolchain.rfind(' ') + 1) +
                                ", or an older NVRTC where the agent runs (the extra cubind[cuda12])"));
}

}  // namespace

void throw_not_unchanged_because(const std::vector<AnswerCandidate>& candidates, const Question& question,
                                 std::uint64_t generation) {
  const std::string where = "kernel " + question.key.kernel;
  const std::string what = to_string(question.key.problem) + " on " + question.device.label;
  const std::string locked = "generation " + std::to_string(generation);
  if (candidates.empty() || !candidates.front().record) {
    throw Error(ErrorCode::NotFound, where,
                locked + ", to which the question is locked, has no record for " + what);
  }
  const AnswerCandidate& best = candidates.front();
  const std::string serves = locked + " cannot be served unchanged for " + what + ": ";
  if (best.match.has(Departure::OtherRevision)) {
    throw Error(
        ErrorCode::FailedPrecondition, where,
        serves +
            "the kernel's source or its launches have changed since. Serve the earlier ones, as from a "
            "bundle that was made then, or lock a newer generation");
  }
  throw Error(ErrorCode::FailedPrecondition, where,
              serves + "the cubin " + best.record->cubin.hex() + " that was measured by " +
                  best.record->toolchain.name +
                  " is not stored, and no agent made the same bytes. A table that was imported brings none: "
                  "`cubindctl tune` measures here");
}

void throw_no_answer(const Question& question, const Resolution& resolution, const AgentProfiles& agents,
                     const CompileAttempts& compiles, const std::string& leaves_none,
                     const std::string& why) {
  const std::string where = "kernel " + question.key.kernel;
  const std::string what = to_string(question.key.problem) + " on " + question.device.label;
  if (!resolution.compile && !resolution.unlaunchable.empty()) {
    throw Error(ErrorCode::FailedPrecondition, where,
                "no acceptable configuration can be launched for " + what + ": " + resolution.unlaunchable);
  }
  refuse_old_driver(question, resolution, agents);
  if (!resolution.compile && compiles.job.empty() && !compiles.any_failed) {
    if (resolution.best_refused) {
      throw Error(ErrorCode::NotFound, where,
                  "no answer within `accept` for " + what + "; the best there is has the match " +
                      quoted(to_string(*resolution.best_refused)) + (why.empty() ? "" : ": " + why));
    }
    throw Error(ErrorCode::FailedPrecondition, where,
                "no configuration is valid for " + what +
                    (leaves_none.empty() ? "" : ": " + leaves_none + " leaves none"));
  }
  if (!compiles.barred.empty()) {
    throw Error(ErrorCode::FailedPrecondition, where,
                "no candidate for " + what + " has a compiled artifact: " + compiles.barred);
  }
  if (!resolution.compile && !compiles.error.empty()) {
    throw Error(ErrorCode::FailedPrecondition, where, "nothing compiles for " + what + ": " + compiles.error);
  }
  const ToolchainNeed need = kernel_need(question);
  if (!agents.empty() && !current_toolchain(agents, need)) {
    throw Error(ErrorCode::FailedPrecondition, where,
                "no candidate for " + what + " has a compiled artifact, and no agent compiles one: " +
                    no_toolchain_because(need, agents));
  }
  if (!compiles.refusal.empty()) {
    throw Error(ErrorCode::ResourceExhausted, where,
                "job " + compiles.job + " has compiled a candidate for " + what +
                    ", and it could not be stored: " + compiles.refusal +
                    ". The job is repeated when there is room");
  }
  const std::string job = compiles.job.empty() ? "a compile could not be queued: " + compiles.error
                                               : "job " + compiles.job + " compiles one";
  throw Error(ErrorCode::Unavailable, where,
              "no candidate for " + what + " has a compiled artifact yet; " + job +
                  (compiles.job.empty() ? ""
                   : agents.empty()     ? " when an agent connects: none is there"
                                        : ": ask again, or with on_miss=wait, which waits for it"));
}

}  // namespace cubind
