// Tables out of one daemon and into another.
#include <catch2/catch.hpp>

#include "tests/support/tiny_daemon.hpp"
#include "tuner/measure/statistics.hpp"

namespace cubind::test {
namespace {

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

}  // namespace
}  // namespace cubind::test
