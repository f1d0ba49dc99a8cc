#include "server/answer/freshness.hpp"

#include "server/lookup/todays_trial.hpp"
#include "server/store/store.hpp"

namespace cubind {
namespace {

std::set<Digest> tried_trials(const RecordRow& record, Store& store) {
  const TrialGroup group{record.question.kernel, record.question.problem, record.question.device_class,
                         record.question.policy, driver_branch(record.driver.version)};
  std::set<Digest> tried;
  store.read([&](StoreReader& reader) {
    for (const TrialRow& trial : reader.trials(group)) {
      tried.insert(trial.key.digest);
    }
  });
  return tried;
}

/// Trials that ran out of memory in the record's job are not stored: they were tried all the same.
std::size_t out_of_memory(const RecordRow& record, Store& store) {
  std::size_t count = 0;
  store.read([&](StoreReader& reader) {
    const auto job = reader.job(record.job_id);
    for (const OutcomeCount& outcome : job ? job->outcomes : std::vector<OutcomeCount>{}) {
      count += outcome.outcome == Outcome::OutOfMemory ? outcome.count : 0;
    }
  });
  return count;
}

/// The validators of a new measurement. Absent: the next agent is unknown.
std::optional<RecordRow> made_by_tuning(const Question& question, const AgentProfiles& agents) {
  for (const AgentProfile& agent : agents) {
    const auto device = offered_device({agent}, question.key.device_class);
    if (!device) {
      continue;
    }
    RecordRow made;
    made.driver = device->driver;
    made.timing.power_limit_mw = device->device.facts.power_limit_mw;
    // An agent measures with its own toolchains, whatever others offer for compiling.
    if (const auto toolchain =
            current_toolchain({agent}, device->driver, architecture(device->device.facts, false))) {
      made.toolchain.name = toolchain->name;
    }
    return made;
  }
  return std::nullopt;
}

}  // namespace

std::optional<AnswerCandidate> settled_answer(const Question& question, Answerer& answerer,
                                              const IndexSnapshot& index, Store& store) {
  const auto candidates = answerer.candidates(question, index);
  if (candidates.empty() || !is_fresh(question, candidates.front())) {
    return std::nullopt;
  }
  const RecordRow& record = *candidates.front().record;
  const std::size_t untried =
      count_untried(*question.spec, record, question.device.facts, tried_trials(record, store));
  if (untried > 0 && untried > out_of_memory(record, store)) {
    return std::nullopt;
  }
  return candidates.front();
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
         made->toolchain.name == *question.toolchain;
}

}  // namespace cubind
