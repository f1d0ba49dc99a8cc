// Tables out of one daemon and into another.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/support/tiny_daemon.hpp"
#include "tuner/measure/statistics.hpp"

namespace cubind::test {
namespace {

TEST_CASE("exporting an unchanged store gives the same canonical bytes") {
  TinyDaemon daemon;
  const Connection connection = daemon->connect();
  tune(connection, {tiny_problem(2)});
  const std::string first = export_everything(connection);
  CHECK(first == export_everything(connection));
  CHECK(print_table(read_table(first, "export")) == first);
}

TEST_CASE("an export of all trials has every sample and names the measured cubin with the winner") {
  TinyDaemon daemon;
  const Connection connection = daemon->connect();
  const auto ended = tune(connection, {tiny_problem(2)});
  const v1::GetVariantReply reply = connection.get_variant(question(connection, tiny_problem(2)), kPatience);
  const Table table = read_table(export_everything(connection), "export");
  REQUIRE(table.records.size() == 1);
  CHECK(table.records[0].context.artifact.view() == reply.artifact().digest());
  CHECK(table.records[0].evidence == Evidence::Replayed);
  REQUIRE(table.trials.size() == kTinyConfigurations);
  std::size_t blocks = 0;
  for (const TableTrial& trial : table.trials) {
    blocks += trial.screening.size() + trial.finals.size();
  }
  CHECK(blocks == daemon.measured_blocks().size());
}

TEST_CASE("what was replayed is not exported but counted unless it is asked for") {
  TinyDaemon daemon;
  const Connection connection = daemon->connect();
  tune(connection, {tiny_problem(2)});
  const v1::TableChunk exported = connection.export_table({}, kPatience);
  CHECK(exported.replayed_left_out() == 1);
  const Table table = read_table(exported.json(), "export");
  CHECK(table.records.empty());
  CHECK(table.devices.empty());
  v1::ExportTableRequest trials;
  trials.set_all_trials(true);
  CHECK(connection.export_table(trials, kPatience).replayed_left_out() == 1 + kTinyConfigurations);
}

TEST_CASE("an export of all trials without their samples has the time of each trial that was measured") {
  TinyDaemon daemon;
  const Connection connection = daemon->connect();
  tune(connection, {tiny_problem(2)});
  v1::ExportTableRequest request;
  request.set_all_trials(true);
  request.set_include_replayed(true);
  const Table summary = read_table(connection.export_table(request, kPatience).json(), "export");
  request.set_include_samples(true);
  const Table full = read_table(connection.export_table(request, kPatience).json(), "export");
  REQUIRE(summary.trials.size() == full.trials.size());
  std::size_t timed = 0;
  for (std::size_t i = 0; i < full.trials.size(); ++i) {
    std::vector<double> samples;
    for (const SampleBlock& block :
         full.trials[i].finals.empty() ? full.trials[i].screening : full.trials[i].finals) {
      samples.insert(samples.end(), block.samples_us().begin(), block.samples_us().end());
    }
    CHECK(summary.trials[i].samples == samples.size());
    const bool won = full.trials[i].context.trial == full.records.at(0).context.trial;
    CHECK(summary.trials[i].time_us == (won               ? full.records[0].timing.median_us()
                                        : samples.empty() ? 0
                                                          : median(samples)));
    CHECK(summary.trials[i].screening.empty());
    CHECK(full.trials[i].samples == 0);
    timed += samples.empty() ? 0 : 1;
  }
  CHECK(timed == kTinyConfigurations);
}

TEST_CASE("an imported winner answers a second daemon with evidence imported") {
  TinyDaemon first;
  tune(first->connect(), {tiny_problem(2)});
  const Table table = first.as_of_a_real_gpu();
  TinyDaemon second;
  const Connection connection = second->connect();
  const v1::ImportTableReply report = connection.import_table(print_table(table), "mine.json", "", kPatience);
  CHECK(report.records_added() == 1);
  v1::GetVariantRequest request = question(connection, tiny_problem(2));
  request.mutable_device()->mutable_facts()->clear_replay_table();
  const v1::GetVariantReply reply = connection.get_variant(request, kPatience);
  CHECK(reply.provenance().departures().empty());
  CHECK(reply.provenance().evidence() == v1::IMPORTED);
  CHECK(reply.provenance().same_bytes_measured());  // the same source and compiler
  CHECK_FALSE(reply.artifact().zstd_cubin().empty());
}

TEST_CASE("an imported replay keeps its class and never answers for a real one") {
  TinyDaemon first;
  tune(first->connect(), {tiny_problem(2)});
  TinyDaemon second({.problems = {tiny_problem(5)}});
  const Connection connection = second->connect();
  connection.import_table(export_everything(first->connect()), "replayed.json", "", kPatience);
  v1::GetVariantRequest request = question(connection, tiny_problem(2));
  request.mutable_device()->mutable_facts()->clear_replay_table();
  const v1::GetVariantReply reply = connection.get_variant(request, kPatience);
  REQUIRE(reply.provenance().departures_size() == 1);
  CHECK(reply.provenance().departures(0) == v1::DEFAULT_CONFIGURATION);
}

TEST_CASE("importing a table twice adds nothing the second time") {
  TinyDaemon daemon;
  const Connection connection = daemon->connect();
  tune(connection, {tiny_problem(2)});
  const Table table = daemon.as_of_a_real_gpu();
  connection.import_table(print_table(table), "mine.json", "", kPatience);
  const v1::ImportTableReply again = connection.import_table(print_table(table), "mine.json", "", kPatience);
  CHECK(again.records_added() == 0);
  CHECK(again.records_known() == 1);
  CHECK(again.trials_added() == 0);
}

TEST_CASE("a malformed table is refused with file and pointer and nothing of it is imported") {
  TinyDaemon daemon;
  const Connection connection = daemon->connect();
  const std::string text = R"({"format": "cubind-table", "version": 1, "devices": [], "records": [{}]})";
  try {
    connection.import_table(text, "mine.json", "", kPatience);
    FAIL("imported");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::InvalidArgument);
    CHECK(std::string(error.what()).find("mine.json /records/0") != std::string::npos);
  }
  CHECK(connection.get_status(kPatience).records() == 0);
}

}  // namespace
}  // namespace cubind::test
