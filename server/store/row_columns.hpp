// The columns of each table, one list a row type: SELECT and INSERT name them in this order (sql.hpp), and in
// this order they are bound and read. A field that is added to a row is added here.
//
// Columns that are not simply written and read back stand before these in the statements: ids, keys that are
// checked against their digests, generations, the rows' own dates, columns that are made of others, and
// comparisons with libraries, which come later than their record.
#pragma once

#include <concepts>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "server/store/connection.hpp"
#include "server/store/rows.hpp"

namespace cubind::store {

/// A row to be written is const, one to be read is not.
template <typename Row, typename Type>
concept IsA = std::same_as<std::remove_const_t<Row>, Type>;

/// A digest whose column is null where it is zero.
template <typename Value>
struct NullIfZero {
  Value& digest;
};
template <typename Value>
NullIfZero<Value> null_if_zero(Value& digest) {
  return {digest};
}

template <typename Visitor>
void visit_columns(IsA<RecordQuestion> auto& question, Visitor& visit) {
  visit("kernel", question.kernel);
  visit("interface", question.interface);
  visit("problem", question.problem);
  visit("device_class", question.device_class);
  visit("policy", question.policy);
  visit("numerics", question.numerics);
  visit("namespace", question.name_space);
}

template <typename Visitor>
void visit_columns(IsA<ToolchainIdentity> auto& toolchain, Visitor& visit) {
  visit("toolchain_name", toolchain.name);
  visit("nvrtc", toolchain.nvrtc);
  visit("builtins", toolchain.builtins);
  visit("headers", toolchain.headers);
}

template <typename Visitor>
void visit_columns(IsA<DriverVersion> auto& driver, Visitor& visit) {
  visit("driver_cuda", driver.cuda);
  visit("driver_version", driver.version);
}

template <typename Visitor>
void visit_columns(IsA<DeviceClass> auto& device, Visitor& visit) {
  visit("label", device.label);
  visit("facts", device.facts);
}

template <typename Visitor>
void visit_columns(IsA<ArtifactRow> auto& artifact, Visitor& visit) {
  visit("cubin", artifact.cubin);
  visit("kernel", artifact.kernel);
  visit("architecture", artifact.architecture);
  visit("cubin_bytes", artifact.cubin_bytes);
  visit("entries", artifact.entries);
  visit("entry_symbols", artifact.entry_symbols);
  visit("resources", artifact.resources);
  visit_columns(artifact.toolchain, visit);
  visit("compile_ms", artifact.compile_ms);
}

template <typename Visitor>
void visit_columns(IsA<TrialRow> auto& trial, Visitor& visit) {
  visit("origin", trial.origin);
  visit("artifact_key", trial.artifact_key);
  visit("kernel", trial.kernel);
  visit("source", null_if_zero(trial.source));
  visit("problem", trial.problem);
  visit("configuration", trial.configuration);
  visit("device_class", trial.device_class);
  visit("policy", trial.policy);
  visit_columns(trial.driver, visit);
  visit("outcome", trial.outcome);
  visit("detail", trial.detail);
  visit("fault_count", trial.fault_count);
  visit("measured_as", trial.measured_as);
  visit_columns(trial.toolchain, visit);
  visit("cubin", null_if_zero(trial.cubin));
  visit("architecture", trial.architecture);
  visit("resources", trial.resources);
  visit("series", trial.series);
  visit("job", trial.job_id);
}

template <typename Visitor>
void visit_columns(IsA<BlockConditions> auto& conditions, Visitor& visit) {
  visit("sm_mhz", conditions.sm_mhz);
  visit("memory_mhz", conditions.memory_mhz);
  visit("temperature_c", conditions.temperature_c);
  visit("power_mw", conditions.power_mw);
  visit("throttle_reasons", conditions.throttle_reasons);
  visit("throttled", conditions.throttled);
  visit("contended", conditions.contended);
}

/// Leaves out trial, origin and series, which say where a block belongs.
template <typename Visitor>
void visit_columns(IsA<BlockRow> auto& row, Visitor& visit) {
  visit("stage", row.stage);
  visit("position", row.index);
  visit("samples_us", row.block.samples_us);
  visit_columns(row.block.conditions, visit);
  visit("timer", row.timer);
  visit("tick_us", row.tick_us);
  visit("judged_against_us", row.block.judged_against_us);
  visit("job", row.job_id);
}

/// Leaves out trial and series.
template <typename Visitor>
void visit_columns(IsA<VerificationRow> auto& row, Visitor& visit) {
  visit("verification_digest", row.verification_digest);
  visit("problem", row.result.problem);
  visit("after_timing", row.result.after_timing);
  visit("outcome", row.result.outcome);
  visit("worst_excess", row.result.worst_excess);
  visit("worst_output", row.result.worst_output);
  visit("worst_index", row.result.worst_index);
  visit("mismatches", row.result.mismatches);
  visit("same_bits", row.result.same_bits);
  visit("detail", row.result.detail);
  visit("reference", row.result.reference);
  visit("job", row.job_id);
}

template <typename Visitor>
void visit_columns(IsA<Timing> auto& timing, Visitor& visit) {
  visit("median_us", timing.median_us);
  visit("median_low_us", timing.low_us);
  visit("median_high_us", timing.high_us);
  visit("samples", timing.samples);
  visit("sm_mhz", timing.sm_mhz);
  visit("power_limit_mw", timing.power_limit_mw);
  visit("contended", timing.contended);
  visit("throttled", timing.throttled);
  visit("gain_over_default", timing.gain_over_default);
  visit("timer", timing.timer);
  visit("tick_us", timing.tick_us);
  visit("measured_at", timing.measured_at);
}

template <typename Visitor>
void visit_columns(IsA<VerificationSummary> auto& summary, Visitor& visit) {
  visit("verified", summary.verified);
  visit("verification_digest", summary.digest);
  visit("verification_reference", summary.reference);
  visit("worst_excess", summary.worst_excess);
  visit("verified_problems", summary.problems);
  visit("same_bits", summary.same_bits);
  visit("verified_after_timing", summary.after_timing);
}

template <typename Visitor>
void visit_columns(IsA<SearchSummary> auto& search, Visitor& visit) {
  visit("search_space", null_if_zero(search.space));
  visit("search_strategy", search.strategy);
  visit("search_trials", search.trials);
  visit("search_seconds", search.seconds);
  visit("search_complete", search.complete);
}

template <typename Visitor>
void visit_columns(IsA<RecordRow> auto& record, Visitor& visit) {
  visit_columns(record.question, visit);
  visit("configuration", record.configuration);
  visit("trial", record.trial);
  visit("cubin", record.cubin);
  visit("architecture", record.architecture);
  visit_columns(record.toolchain, visit);
  visit_columns(record.driver, visit);
  visit("evidence", record.evidence);
  visit("provisional", record.provisional);
  visit_columns(record.timing, visit);
  visit_columns(record.verification, visit);
  visit("finalists", record.finalists);
  visit_columns(record.search, visit);
  visit("job", record.job_id);
}

template <typename Visitor>
void visit_columns(IsA<JobRow> auto& job, Visitor& visit) {
  visit("id", job.id);
  visit("kind", job.kind);
  visit("key", job.key);
  visit_columns(job.question, visit);
  visit("state", job.state);
  visit("fence", job.fence);
  visit("series", job.series);
  visit("retune", job.retune);
  visit("interruptions", job.interruptions);
  visit("error", job.error);
  visit("note", job.note);
  visit("created_at", job.created_at);
  visit("finished_at", job.finished_at);
  visit("elapsed_ms", job.elapsed_ms);
  visit("configurations", job.configurations);
  visit("configurations_done", job.configurations_done);
  visit("nvrtc_calls", job.nvrtc_calls);
  visit("outcomes", job.outcomes);
  visit("record_trial", job.record_trial);
  visit("listed", job.listed);
  visit("architecture", job.architecture);
  visit("driver_cuda", job.driver_cuda);
  visit("for_bucket", job.for_bucket);
  visit("needs_bytes", job.needs_bytes);
  visit("max_trials", job.budget.max_trials);
  visit("max_seconds", job.budget.max_seconds);
  visit("hints", job.hints);
  visit("stages", job.stages);
  visit("from_scratch", job.from_scratch);
  visit("rounds", job.rounds);
}

template <typename Visitor>
void visit_columns(IsA<WantRow> auto& want, Visitor& visit) {
  visit_columns(want.question, visit);
  visit("count", want.count);
  visit("first_at", want.first_at);
  visit("last_at", want.last_at);
}

/// Their names, in order.
template <typename Row>
std::vector<std::string> column_names() {
  std::vector<std::string> names;
  const auto add = [&](std::string_view name, const auto&) { names.emplace_back(name); };
  const Row row{};
  visit_columns(row, add);
  return names;
}

/// Binds columns. It keeps the texts that it makes of their values.
class ColumnWriter {
 public:
  explicit ColumnWriter(Statement& query) : query_(query) {}

  template <typename Value>
  void operator()(std::string_view, const Value& value) {
    put(value);
  }

 private:
  template <typename Value>
    requires std::is_arithmetic_v<Value> || std::same_as<Value, std::string> || std::same_as<Value, Digest> ||
             std::same_as<Value, std::optional<Digest>>
  void put(const Value& value) {
    query_.bind(value);
  }
  void put(NullIfZero<const Digest> value);
  void put(Stage stage) { query_.bind(static_cast<int>(stage)); }
  void put(Outcome outcome) { query_.bind(to_string(outcome)); }
  void put(Evidence evidence) { query_.bind(to_string(evidence)); }
  void put(Origin origin);
  void put(JobState state);
  void put(JobKind kind);
  void put(const Policy& policy) { put_made(to_string(policy)); }
  void put(const Numerics& numerics) { put_made(to_string(numerics)); }
  void put(const Problem& problem);
  void put(const std::vector<Problem>& problems);
  void put(const Configuration& configuration);
  void put(const std::vector<Configuration>& configurations);
  void put(const std::vector<std::string>& strings);
  void put(const std::vector<EntryResources>& resources);
  void put(const std::vector<OutcomeCount>& outcomes);
  void put(const std::vector<StageTime>& stages);
  void put(const DeviceFacts& facts);
  void put(const std::vector<double>& values);
  void put(const std::vector<Digest>& digests);
  void put_made(std::string text) { query_.bind(made_.emplace_back(std::move(text))); }
  void put_made_bytes(std::string bytes) {
    query_.bind(Statement::bytes(made_.emplace_back(std::move(bytes))));
  }

  Statement& query_;
  std::deque<std::string> made_;  // a query does not copy what it binds
};

/// Reads columns. Throws DataLoss at a value that does not read back; the query tells its column.
class ColumnReader {
 public:
  explicit ColumnReader(Statement& row) : row_(row) {}

  template <typename Value>
  void operator()(std::string_view, Value&& value) {
    get(value);
  }

 private:
  void get(std::uint64_t& value) { value = row_.unsigned_integer(); }
  void get(std::uint32_t& value) { value = row_.word(); }
  void get(bool& value) { value = row_.flag(); }
  void get(double& value) { value = row_.real(); }
  void get(std::string& value) { value = row_.text(); }
  void get(Digest& value) { value = row_.digest(); }
  void get(std::optional<Digest>& value) { value = row_.optional_digest(); }
  void get(NullIfZero<Digest>& value) { value.digest = row_.optional_digest().value_or(Digest{}); }
  void get(Stage& stage) { stage = static_cast<Stage>(row_.integer()); }
  void get(Outcome& outcome);
  void get(Evidence& evidence);
  void get(Origin& origin);
  void get(JobState& state);
  void get(JobKind& kind);
  void get(Policy& policy);
  void get(Numerics& numerics);
  void get(Problem& problem);
  void get(std::vector<Problem>& problems);
  void get(Configuration& configuration);
  void get(std::vector<Configuration>& configurations);
  void get(std::vector<std::string>& strings);
  void get(std::vector<EntryResources>& resources);
  void get(std::vector<OutcomeCount>& outcomes);
  void get(std::vector<StageTime>& stages);
  void get(DeviceFacts& facts);
  void get(std::vector<double>& values);
  void get(std::vector<Digest>& digests);

  Statement& row_;
};

/// Runs an INSERT of the leading columns and then the row's own.
template <typename Row, typename... Leading>
void insert(Statement query, const Row& row, const Leading&... leading) {
  query.bind(leading...);
  ColumnWriter writer(query);
  visit_columns(row, writer);
  query.run();
}

/// The same, for one that returns the row's number.
template <typename Row, typename... Leading>
std::int64_t insert_returning(Statement query, const Row& row, const Leading&... leading) {
  query.bind(leading...);
  ColumnWriter writer(query);
  visit_columns(row, writer);
  query.step();
  return query.integer();
}

/// Reads the row's own columns, after the leading ones.
template <typename Row>
void read_columns(Statement& query, Row& row) {
  ColumnReader reader(query);
  visit_columns(row, reader);
}

}  // namespace cubind::store
