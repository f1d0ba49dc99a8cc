// Why a GetVariant has no answer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/answer/answerer.hpp"
#include "server/fleet.hpp"

namespace cubind {

/// The compiles that a call has tried.
struct CompileAttempts {
  std::string job;    // id; empty: none was queued
  std::string error;  // of the latest that failed or was not queued
  bool any_failed = false;
  std::string refusal = {};  // why the store did not take what `job` has compiled
  std::string barred = {};   // why nothing is compiled for the caller
};

/// Throws NotFound, FailedPrecondition, ResourceExhausted or Unavailable, and says what would be right.
/// `leaves_none` is the condition that no configuration satisfies, where one is known; `why` says what keeps
/// a better answer from coming, if anything does.
[[noreturn]] void throw_no_answer(const Question& question, const Resolution& resolution,
                                  const AgentProfiles& agents, const CompileAttempts& compiles,
                                  const std::string& leaves_none, const std::string& why);

/// The same of a question that is locked to this generation. `candidates` are those of the question without
/// the lock.
[[noreturn]] void throw_not_unchanged_because(const std::vector<AnswerCandidate>& candidates,
                                              const Question& question, std::uint64_t generation);

}  // namespace cubind
