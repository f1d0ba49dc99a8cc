// A bucket whose representative the GPU has no memory for.
#include <catch2/catch.hpp>

#include "plan/wire.hpp"
#include "tests/support/tiny_daemon.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

// Of f32 the representative takes 256 MiB a buffer: x, y and the reference's y are 768 MiB, in addition to
// the 102 MiB of flush and workspace. Half way down its bucket it is 576 MiB.
const Problem kAsked = tiny_problem(2, 60'000'000);
const Problem kRepresentative = tiny_problem(2, 1 << 26);
const Problem kSmaller = tiny_problem(2, (1 << 25) + (1 << 24));
constexpr std::uint64_t kMiB = 1 << 20;
// Trials may use 0.9 of it.
constexpr std::uint64_t kForTheSmaller = 800 * kMiB;
constexpr std::uint64_t kForNone = 200 * kMiB;

TinyDaemonOptions with_free(std::uint64_t bytes) {
  return {.problems = {kSmaller}, .free_memory = bytes, .environment = {"CUBIND_MEMORY_POLL_MS=50"}};
}

v1::GetVariantReply ask_and_wait(const Connection& connection, const Problem& problem) {
  v1::GetVariantRequest request = question(connection, problem);
  request.set_on_miss(v1::WAIT);
  return connection.get_variant(request, kPatience);
}

std::vector<v1::Job> tune_jobs(const Connection& connection) {
  std::vector<v1::Job> result;
  const auto reply = connection.list_jobs(true, kPatience);
  for (const v1::Job& job : reply.jobs()) {
    if (job.kind() == v1::Job::TUNE) {
      result.push_back(job);
    }
  }
  return result;
}

Problem measured(const v1::GetVariantReply& reply) {
  return problem_from_wire(reply.provenance().measured_problem(), "measured_problem");
}

TEST_CASE(
    "where a bucket's representative does not fit who waits is answered by the largest smaller problem") {
  TinyDaemon daemon(with_free(kForTheSmaller));
  const Connection connection = daemon->connect();
  const v1::GetVariantReply reply = ask_and_wait(connection, kAsked);
  CHECK(measured(reply) == kSmaller);
  REQUIRE(reply.provenance().departures_size() == 1);
  CHECK(reply.provenance().departures(0) == v1::BUCKET);
  CHECK(reply.job_state() == "done");
  const auto jobs = tune_jobs(connection);
  REQUIRE(jobs.size() == 1);
  CHECK_THAT(jobs[0].note(),
             Contains("measured " + to_string(kSmaller) + " for " + to_string(kRepresentative)) &&
                 Contains("--memory-fraction"));
}

TEST_CASE("a Tune of the want list measures the largest problem of a bucket that fits") {
  TinyDaemon daemon(with_free(kForTheSmaller));
  const Connection connection = daemon->connect();
  v1::GetVariantRequest miss = question(connection, kAsked);
  miss.set_tune(v1::NEVER);
  miss.set_compile_wait_ms(60'000);
  connection.get_variant(miss, kPatience);
  REQUIRE(eventually([&] { return connection.get_status(kPatience).misses_wanted() == 1; }));
  v1::TuneRequest wanted;
  wanted.mutable_wanted();
  connection.tune(
      wanted, [](const v1::TuneEvent&) {}, {}, kPatience);
  REQUIRE(tune_jobs(connection).size() == 1);
  CHECK(tune_jobs(connection)[0].state() == v1::Job::DONE);
  CHECK(measured(connection.get_variant(miss, kPatience)) == kSmaller);
  CHECK(connection.get_status(kPatience).misses_wanted() == 0);
}

TEST_CASE("a bucket none of whose problems fits is not tried again until more memory is free") {
  TinyDaemon daemon(with_free(kForNone));
  const Connection connection = daemon->connect();
  CHECK(ask_and_wait(connection, kAsked).job_state() == "failed");
  CHECK_THAT(tune_jobs(connection).at(0).error(),
             Contains("of its bucket N=33554433") && Contains("still needs"));
  CHECK(ask_and_wait(connection, kAsked).job_id().empty());
  daemon.set_free_memory(kForTheSmaller);
  CHECK(eventually([&] { return !ask_and_wait(connection, kAsked).job_id().empty(); }));
  CHECK(measured(ask_and_wait(connection, kAsked)) == kSmaller);
  CHECK(tune_jobs(connection).size() == 2);
}

TEST_CASE("a larger share of the memory lets a bucket that lacked it be tried again") {
  TinyDaemon daemon(with_free(2 * kForTheSmaller), false);
  daemon->options().arguments = {"--memory-fraction", "0.1"};
  daemon->start();
  CHECK(ask_and_wait(daemon->connect(), kAsked).job_state() == "failed");
  daemon->stop();
  daemon->options().arguments = {"--memory-fraction", "0.45"};
  daemon->start();
  const Connection connection = daemon->connect();
  CHECK(eventually([&] { return measured(ask_and_wait(connection, kAsked)) == kSmaller; }));
}

}  // namespace
}  // namespace cubind::test
