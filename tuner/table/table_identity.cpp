#include "tuner/table/table_identity.hpp"

namespace cubind {

TableQuestion question_of(const TableRecord& record) {
  const TableContext& context = record.context;
  return {context.kernel,  to_string(context.problem), context.device_class, context.policy,
          record.numerics, record.name_space};
}

RecordIdentity identity_of(const TableRecord& record) {
  return {question_of(record), record.interface, driver_branch(record.context.driver),
          toolchain_major(record.context.toolchain)};
}

TrialIdentity identity_of(const TableTrial& trial) { return {trial.context.kernel, trial.context.trial}; }

}  // namespace cubind
