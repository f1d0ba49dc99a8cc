#include "server/lookup/todays_trial.hpp"

#include "tuner/spec/todays_terms.hpp"

namespace cubind {

std::optional<Digest> todays_trial_key(const KernelSpec& spec, const RecordRow& record,
                                       const Configuration& configuration, const DeviceFacts& facts) {
  const RecordQuestion& question = record.question;
  return trial_key_under(spec, configuration,
                         {question.problem, question.device_class, device_constants(facts), question.policy,
                          record.driver.version, record.architecture, record.toolchain});
}

}  // namespace cubind
