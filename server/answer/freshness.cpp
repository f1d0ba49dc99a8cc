#include "server/answer/freshness.hpp"

#include "tuner/spec/device_class.hpp"
#include "tuner/spec/keys.hpp"

namespace cubind {
namespace {

/// The validators of a new measurement. Absent: no agent measures it now.
std::optional<RecordRow> made_by_tuning(const Question& question, const AgentProfiles& agents) {
  for (const AgentProfile& agent : agents) {
    const auto device = offered_device({&agent, 1}, question.key.device_class);
    if (!device || !may_tune(agent, kernel_need(question))) {
      continue;
    }
    RecordRow made;
    made.evidence = Evidence::Measured;
    made.driver = device->driver;
    made.timing.set_power_limit_mw(device->device.facts.power_limit_mw());
    // An agent measures with its own toolchains, whatever others offer for compiling.
    const ToolchainNeed need = toolchain_need(*question.spec, question.is_foreign,
                                              architecture(device->device.facts, false), device->driver.cuda);
    if (const auto toolchain = current_toolchain({&agent, 1}, need)) {
      made.toolchain = {toolchain->name, toolchain->nvrtc, toolchain->builtins, {}};
    }
    return made;
  }
  return std::nullopt;
}

}  // namespace

std::optional<AnswerCandidate> settled_answer(const Question& question, const SearchBudget& budget,
                                              Answerer& answerer, const IndexSnapshot& index) {
  const auto candidates = answerer.candidates(question, index);
  if (candidates.empty() || !is_fresh(question, candidates.front())) {
    return std::nullopt;
  }
  const SearchSummary& search = candidates.front().record->search;
  const Digest space =
      space_digest(*question.spec, question.key.problem, device_constants(question.device.facts));
  const bool is_searched = search.space() == bytes_of(space) && covers(search, budget);
  return is_searched ? std::optional(candidates.front()) : std::nullopt;
}

bool stands_for_bucket(const Question& question, Answerer& answerer, const IndexSnapshot& index) {
  if (question.spec->representative(question.key.problem) != question.key.problem) {
    return false;
  }
  const auto candidates = answerer.candidates(question, index);
  return candidates.empty() || !is_of_bucket(candidates.front());
}

bool tuning_refreshes(const Question& question, const AgentProfiles& agents) {
  const auto made = made_by_tuning(question, agents);
  return !made || !is_stale(question, *made, true);
}

bool tuning_keeps_toolchain(const Question& question, const AgentProfiles& agents) {
  const auto made = made_by_tuning(question, agents);
  return !made || made->toolchain.name.empty() || !question.toolchain ||
         is_current(*question.toolchain, made->toolchain);
}

}  // namespace cubind
