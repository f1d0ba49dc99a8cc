#include "server/store/row_columns.hpp"

#include "server/store/columns.hpp"

namespace cubind::store {

void ColumnWriter::put(NullIfZero<const Digest> value) {
  if (value.digest.is_zero()) {
    query_.bind(std::monostate());
  } else {
    query_.bind(value.digest);
  }
}

void ColumnWriter::put(Origin origin) { query_.bind(origin_name(origin)); }
void ColumnWriter::put(JobState state) { query_.bind(state_name(state)); }
void ColumnWriter::put(JobKind kind) { query_.bind(kind_name(kind)); }
void ColumnWriter::put(const Problem& problem) { put_made(write_problem(problem)); }
void ColumnWriter::put(const std::vector<Problem>& problems) { put_made(write_problems(problems)); }
void ColumnWriter::put(const Configuration& configuration) { put_made(write_configuration(configuration)); }
void ColumnWriter::put(const std::vector<Configuration>& configurations) {
  put_made(write_configurations(configurations));
}
void ColumnWriter::put(const std::vector<std::string>& strings) { put_made(write_strings(strings)); }
void ColumnWriter::put(const std::vector<EntryResources>& resources) { put_made(write_resources(resources)); }
void ColumnWriter::put(const std::vector<OutcomeCount>& outcomes) { put_made(write_outcomes(outcomes)); }
void ColumnWriter::put(const std::vector<StageTime>& stages) { put_made(write_stages(stages)); }
void ColumnWriter::put(const DeviceFacts& facts) { put_made(write_facts(facts)); }
void ColumnWriter::put(const std::vector<double>& values) { put_made_bytes(write_doubles(values)); }
void ColumnWriter::put(const std::vector<Digest>& digests) { put_made_bytes(write_digests(digests)); }

void ColumnReader::get(Outcome& outcome) { outcome = read_outcome(row_.text()); }
void ColumnReader::get(Evidence& evidence) { evidence = read_evidence(row_.text()); }
void ColumnReader::get(Origin& origin) { origin = read_origin(row_.text()); }
void ColumnReader::get(JobState& state) { state = read_state(row_.text()); }
void ColumnReader::get(JobKind& kind) { kind = read_kind(row_.text()); }
void ColumnReader::get(Policy& policy) { policy = read_policy(row_.text()); }
void ColumnReader::get(Numerics& numerics) { numerics = read_numerics(row_.text()); }
void ColumnReader::get(Problem& problem) { problem = read_problem(row_.text()); }
void ColumnReader::get(std::vector<Problem>& problems) { problems = read_problems(row_.text()); }
void ColumnReader::get(Configuration& configuration) { configuration = read_configuration(row_.text()); }
void ColumnReader::get(std::vector<Configuration>& configurations) {
  configurations = read_configurations(row_.text());
}
void ColumnReader::get(std::vector<std::string>& strings) { strings = read_strings(row_.text()); }
void ColumnReader::get(std::vector<EntryResources>& resources) { resources = read_resources(row_.text()); }
void ColumnReader::get(std::vector<OutcomeCount>& outcomes) { outcomes = read_outcomes(row_.text()); }
void ColumnReader::get(std::vector<StageTime>& stages) { stages = read_stages(row_.text()); }
void ColumnReader::get(DeviceFacts& facts) { facts = read_facts(row_.text()); }
void ColumnReader::get(std::vector<double>& values) { values = read_doubles(row_.blob()); }
void ColumnReader::get(std::vector<Digest>& digests) { digests = read_digests(row_.blob()); }

}  // namespace cubind::store
