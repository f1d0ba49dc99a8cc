#include "server/lookup/todays_trial.hpp"

#include "tuner/spec/space.hpp"
#include "tuner/spec/todays_terms.hpp"

namespace cubind {

std::optional<Digest> todays_trial_key(const KernelSpec& spec, const RecordRow& record,
                                       const Configuration& configuration, const DeviceFacts& facts) {
  const RecordQuestion& question = record.question;
  return trial_key_under(spec, configuration,
                         {question.problem, question.device_class, device_constants(facts), question.policy,
                          record.driver.version, record.architecture, record.toolchain});
}

std::size_t count_untried(const KernelSpec& spec, const RecordRow& record, const DeviceFacts& facts,
                          const std::set<Digest>& tried) {
  std::set<Digest> untried;  // two configurations that make the same machine code and launches are one trial
  for (const Configuration& configuration :
       enumerate_valid(spec, record.question.problem, device_constants(facts))) {
    const auto key = todays_trial_key(spec, record, configuration, facts);
    if (key && !tried.contains(*key)) {
      untried.insert(*key);
    }
  }
  return untried.size();
}

}  // namespace cubind
