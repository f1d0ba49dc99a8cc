#include "server/jobs/latest_measurement.hpp"

#include "server/lookup/lookup.hpp"

namespace cubind {

RecordPtr latest_measurement(const RecordQuestion& question, const IndexSnapshot& index) {
  const ClassRecords* records = index.records(question);
  if (!records) {
    return nullptr;
  }
  const auto found = records->by_problem.find(to_string(question.problem));
  if (found == records->by_problem.end()) {
    return nullptr;
  }
  RecordPtr latest;
  for (const RecordPtr& record : found->second) {
    if (was_measured_here(*record) && (!latest || record->id > latest->id)) {
      latest = record;
    }
  }
  return latest;
}

}  // namespace cubind
