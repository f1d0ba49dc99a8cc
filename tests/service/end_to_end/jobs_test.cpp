// Jobs as callers see them: listed, watched, cancelled, drained.
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <thread>

#include "base/error.hpp"
#include "tests/support/tiny_daemon.hpp"

namespace cubind::test {
namespace {

std::string submit(const Connection& connection, const Problem& problem) {
  v1::TuneRequest request = tune_request({problem});
  request.set_detach(true);
  std::string id;
  connection.tune(
      request, [&](const v1::TuneEvent& event) { id = event.job().id(); }, {}, kPatience);
  return id;
}

std::optional<v1::Job> find_job(const Connection& connection, const std::string& id) {
  const auto reply = connection.list_jobs(true, kPatience);
  for (const v1::Job& job : reply.jobs()) {
    if (job.id() == id) {
      return job;
    }
  }
  return std::nullopt;
}

bool is_in(const Connection& connection, const std::string& id, v1::Job::State state) {
  const auto job = find_job(connection, id);
  return job && job->state() == state;
}

v1::TuneEvent watch_to_end(const Connection& connection, const std::string& id) {
  v1::TuneEvent last;
  connection.watch_job(
      id, [&](const v1::TuneEvent& event) { last = event; }, {}, std::nullopt);
  return last;
}

TEST_CASE("a detached job is listed while it runs and after it has ended") {
  TinyDaemon daemon({.hold = true});
  const Connection connection = daemon->connect();
  const std::string id = submit(connection, tiny_problem(2));
  REQUIRE_FALSE(id.empty());
  REQUIRE(eventually([&] { return is_in(connection, id, v1::Job::RUNNING); }));
  daemon.let_go();
  CHECK(watch_to_end(connection, id).job().state() == v1::Job::DONE);
  const auto job = find_job(connection, id);
  REQUIRE(job);
  CHECK(job->state() == v1::Job::DONE);
  CHECK(job->kernel() == kTinyKernel);
  CHECK_FALSE(job->finished_at().empty());
  CHECK(job->configurations() == kTinyConfigurations);
}

TEST_CASE("the watcher of an ended job gets its winner") {
  TinyDaemon daemon;
  const Connection connection = daemon->connect();
  const auto ended = tune(connection, {tiny_problem(2)});
  const v1::TuneEvent told = watch_to_end(connection, ended.at(0).job().id());
  CHECK(told.job().state() == v1::Job::DONE);
  CHECK(told.winner().SerializeAsString() == ended[0].winner().SerializeAsString());
}

TEST_CASE("a caller who goes away leaves the job running") {
  TinyDaemon daemon({.hold = true});
  const Connection connection = daemon->connect();
  std::stop_source stop;
  std::string id;
  const auto leave = [&](const v1::TuneEvent& event) {
    id = event.job().id();
    stop.request_stop();
  };
  CHECK_THROWS_AS(connection.tune(tune_request({tiny_problem(2)}), leave, stop.get_token(), std::nullopt),
                  Error);
  daemon.let_go();
  CHECK(watch_to_end(connection, id).job().state() == v1::Job::DONE);
}

TEST_CASE("SIGTERM hands back a running job and the next start completes it") {
  TinyDaemon daemon({.pace_us = 20'000});
  // A caller waits: a busy machine would leave the compiles of a detached job nothing.
  const std::jthread caller([connection = daemon->connect()] {
    try {
      tune(connection, {tiny_problem(2)});
    } catch (const Error&) {  // the daemon ends
    }
  });
  REQUIRE(eventually([&] {
    return std::ranges::any_of(daemon.measured_blocks(), [](const std::string& line) {
      return line.find("FINAL") != std::string::npos;
    });
  }));
  const std::string id = daemon->connect().list_jobs(true, kPatience).jobs(0).id();
  const std::vector<ProcessId> family = descendants(daemon->pid());
  const auto status = daemon->stop(kPatience);
  REQUIRE(status);
  CHECK(status->success());
  CHECK(wait_until_gone(family).empty());
  daemon->start();
  CHECK(watch_to_end(daemon->connect(), id).job().state() == v1::Job::DONE);
}

// Trial keys of the screening blocks measured from the given line on.
std::set<std::string> screened(const TinyDaemon& daemon, std::size_t from = 0) {
  std::set<std::string> keys;
  const auto lines = daemon.measured_blocks();
  for (std::size_t i = from; i < lines.size(); ++i) {
    if (lines[i].find("SCREEN") != std::string::npos) {
      keys.insert(lines[i].substr(0, lines[i].find(' ')));
    }
  }
  return keys;
}

TEST_CASE("a grown search space has only what is new compiled and screened") {
  TinyDaemon daemon({}, false);
  std::string spec = read_file(daemon.kernels() / "scale.json");
  const std::string all = "\"VECTOR\": [1, 2, 4]";
  write_file_atomic(daemon.kernels() / "scale.json",
                    spec.replace(spec.find(all), all.size(), "\"VECTOR\": [1, 2]"));
  daemon->start();
  const Connection connection = daemon->connect();
  CHECK(tune(connection, {tiny_problem(2)}).at(0).job().configurations() == 8);
  const auto before = screened(daemon);
  const std::size_t lines = daemon.measured_blocks().size();
  write_tiny_kernel(daemon.kernels());
  v1::TuneEvent grown;
  REQUIRE(eventually([&] {
    grown = tune(connection, {tiny_problem(2)}).at(0);
    return !grown.already_fresh();
  }));
  CHECK(grown.job().configurations() == kTinyConfigurations);
  CHECK(grown.job().nvrtc_calls() == 4);
  const auto added = screened(daemon, lines);
  CHECK(added.size() == 4);
  for (const std::string& trial : added) {
    CHECK_FALSE(before.contains(trial));
  }
  CHECK(tune(connection, {tiny_problem(2)}).at(0).already_fresh());
}

TEST_CASE("a problem that the replayed table does not have fails its job with what it has") {
  TinyDaemon daemon({.problems = {tiny_problem(2), tiny_problem(3)}});
  const auto ended = tune(daemon->connect(), {tiny_problem(7)});
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].job().state() == v1::Job::FAILED);
  CHECK_THAT(
      ended[0].job().error(),
      Catch::StartsWith("/") &&
          Catch::Contains("table.json: the replayed table holds no recording of scale at N=4096,K=7,T=f32; "
                          "of scale it holds N=4096,K=2,T=f32; N=4096,K=3,T=f32"));
}

TEST_CASE("a device worker stays while jobs wait for its GPU and ends with the last of them") {
  const std::vector<Problem> problems = {tiny_problem(2), tiny_problem(3)};
  TinyDaemon daemon({.problems = problems});
  CHECK(tune(daemon->connect(), problems).size() == 2);
  CHECK(screened(daemon).size() == 2 * kTinyConfigurations);
  std::set<std::string> workers;
  for (const std::string& block : daemon.measured_blocks()) {
    workers.insert(block.substr(block.rfind(' ') + 1));
  }
  REQUIRE(workers.size() == 1);
  CHECK(eventually([&] { return ::kill(std::stoi(*workers.begin()), 0) != 0; }));
}

std::uint32_t nvrtc_calls(const std::vector<v1::TuneEvent>& ended) {
  std::uint32_t calls = 0;
  for (const v1::TuneEvent& event : ended) {
    CHECK(event.job().state() == v1::Job::DONE);
    calls += event.job().nvrtc_calls();
  }
  return calls;
}

TEST_CASE("problems that differ in nothing compiled in are compiled once") {
  const std::vector<Problem> problems = {tiny_problem(2, 4096), tiny_problem(3, 4096), tiny_problem(2, 8192),
                                         tiny_problem(3, 8192), tiny_problem(2, 16384)};
  TinyDaemon daemon({.problems = problems});
  CHECK(nvrtc_calls(tune(daemon->connect(), problems)) == 2 * kTinyConfigurations);
}

TEST_CASE(
    "a problem that is compiled as an earlier one was needs no compiler, whichever agent compiled that") {
  TinyDaemon daemon({.problems = {tiny_problem(2, 4096), tiny_problem(2, 8192)}});
  REQUIRE(nvrtc_calls(tune(daemon->connect(), {tiny_problem(2, 4096)})) == kTinyConfigurations);
  daemon->stop();
  daemon->start();
  CHECK(nvrtc_calls(tune(daemon->connect(), {tiny_problem(2, 8192)})) == 0);
}

}  // namespace
}  // namespace cubind::test
