// How answers depart from their questions, and what becomes of an answer when the world around it changes.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/zstd.hpp"
#include "client/client.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/tiny_daemon.hpp"

namespace cubind::test {
namespace {

std::vector<int> departures(const v1::GetVariantReply& reply) {
  return {reply.provenance().departures().begin(), reply.provenance().departures().end()};
}

v1::GetVariantReply ask(const Connection& connection, v1::GetVariantRequest request) {
  request.set_tune(v1::NEVER);
  return connection.get_variant(request, kPatience);
}

v1::GetVariantReply ask(const Connection& connection, const Problem& problem) {
  return ask(connection, question(connection, problem));
}

// With K=2 at N=4096 tuned.
class Tuned {
 public:
  explicit Tuned(TinyDaemonOptions options = {}) : daemon(std::move(options)) {
    winner = tune(daemon->connect(), {tiny_problem(2)}).at(0);
  }
  TinyDaemon daemon;
  v1::TuneEvent winner;
};

TEST_CASE("a problem of a measured bucket is answered by its record and says so") {
  Tuned tuned;
  const Connection connection = tuned.daemon->connect();
  const v1::GetVariantReply reply = ask(connection, tiny_problem(2, 2500));
  CHECK(departures(reply) == std::vector<int>{v1::BUCKET});
  CHECK(reply.configuration().SerializeAsString() == tuned.winner.winner().SerializeAsString());
  REQUIRE(reply.rule().intervals_size() >= 1);
  CHECK(reply.rule().intervals(0).lower() == 2049);
  CHECK(reply.rule().intervals(0).upper() == 4096);
}

TEST_CASE("the client answers the other problems of a measured bucket with no call") {
  Tuned tuned;
  Query query;
  query.kernel = kTinyKernel;
  query.device = DeviceLabel{offered_device(tuned.daemon->connect()).label()};
  Client client({.address = tuned.daemon->address()});
  for (const std::int64_t n : {4096, 4095, 3001, 2049}) {
    query.problem = tiny_problem(2, n);
    const Answer answer = client.get(query);
    CHECK(answer.problem().dim("N") == n);
    CHECK(answer.plan().launches.at(0).parameters.at(0).extent_bytes == 4 * static_cast<std::uint64_t>(n));
    CHECK(to_string(answer.match()) == (n == 4096 ? "exact" : "bucket"));
  }
  CHECK(client.calls() == 1);
}

TEST_CASE("a neighbour's winner is carried over and compiled for the asked problem") {
  Tuned tuned;
  const Connection connection = tuned.daemon->connect();
  const v1::GetVariantReply reply = ask(connection, tiny_problem(3));
  CHECK(departures(reply) == std::vector<int>{v1::NEAREST_PROBLEM});
  CHECK(reply.configuration().SerializeAsString() == tuned.winner.winner().SerializeAsString());
  CHECK_FALSE(reply.provenance().same_bytes_measured());
  CHECK_FALSE(reply.artifact().zstd_cubin().empty());
  const v1::GetVariantReply measured = ask(connection, tiny_problem(2));
  CHECK(reply.artifact().digest() != measured.artifact().digest());  // K is compiled in
}

TEST_CASE("a problem far from every record gets the default configuration") {
  Tuned tuned;
  const v1::GetVariantReply reply = ask(tuned.daemon->connect(), tiny_problem(1000));
  CHECK(departures(reply) == std::vector<int>{v1::DEFAULT_CONFIGURATION});
  CHECK(reply.provenance().evidence() == v1::NONE);
  REQUIRE(reply.configuration().values_size() == 2);
  CHECK(reply.configuration().values(0).value() == 128);
  CHECK(reply.configuration().values(1).value() == 1);
}

TEST_CASE("a miss starts one job behind its answer") {
  TinyDaemon daemon;
  const Connection connection = daemon->connect();
  const v1::GetVariantReply first = connection.get_variant(question(connection, tiny_problem(2)), kPatience);
  CHECK(departures(first) == std::vector<int>{v1::DEFAULT_CONFIGURATION});
  REQUIRE_FALSE(first.job_id().empty());
  CHECK(eventually([&] { return departures(ask(connection, tiny_problem(2))).empty(); }));
}

TEST_CASE("a miss that starts no job is counted in the want list") {
  TinyDaemon daemon;
  const Connection connection = daemon->connect();
  const v1::GetVariantReply reply = ask(connection, tiny_problem(2));
  CHECK(reply.job_id().empty());
  CHECK(eventually([&] { return connection.get_status(kPatience).misses_wanted() == 1; }));
}

TEST_CASE("on_miss=fail is NOT_FOUND without an acceptable record") {
  TinyDaemon daemon;
  const Connection connection = daemon->connect();
  v1::GetVariantRequest request = question(connection, tiny_problem(2));
  request.set_on_miss(v1::FAIL);
  try {
    ask(connection, request);
    FAIL("answered");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::NotFound);
  }
}

TEST_CASE("an edited source makes the answer another revision compiled from the new source") {
  Tuned tuned;
  const Connection connection = tuned.daemon->connect();
  const v1::GetVariantReply before = ask(connection, tiny_problem(2));
  write_tiny_kernel(tuned.daemon.kernels(), "edited");
  REQUIRE(eventually([&] { return !departures(ask(connection, tiny_problem(2))).empty(); }));
  const v1::GetVariantReply after = ask(connection, tiny_problem(2));
  CHECK(departures(after) == std::vector<int>{v1::OTHER_REVISION});
  CHECK(after.artifact().key() != before.artifact().key());
  CHECK(after.configuration().SerializeAsString() == before.configuration().SerializeAsString());
}

TEST_CASE("an edited tolerance is called verified only when that has been repeated and keeps the timings") {
  Tuned tuned;
  const Connection connection = tuned.daemon->connect();
  const auto spec = tuned.daemon.kernels() / "scale.json";
  std::string text = read_file(spec);
  text.replace(text.find("1e-6"), 4, "1e-5");
  write_file_atomic(spec, text);
  const auto verified = [&] {
    return ask(connection, tiny_problem(2)).provenance().verification().verified();
  };
  REQUIRE(eventually([&] { return !verified(); }));
  CHECK(departures(ask(connection, tiny_problem(2))).empty());
  const std::size_t measured = tuned.daemon.measured_blocks().size();
  CHECK_FALSE(tune(connection, {tiny_problem(2)}).at(0).already_fresh());
  CHECK(verified());
  CHECK(tuned.daemon.measured_blocks().size() == measured);
}

TEST_CASE("a caller of another driver branch gets a stale answer") {
  Tuned tuned;
  const Connection connection = tuned.daemon->connect();
  v1::GetVariantRequest request = question(connection, tiny_problem(2));
  request.mutable_device()->mutable_driver()->set_version("590.11.02");
  CHECK(departures(ask(connection, request)) == std::vector<int>{v1::STALE});
}

TEST_CASE("a caller without a driver makes nothing stale") {
  Tuned tuned;
  const Connection connection = tuned.daemon->connect();
  v1::GetVariantRequest request = question(connection, tiny_problem(2));
  request.mutable_device()->clear_driver();
  CHECK(departures(ask(connection, request)).empty());
}

TEST_CASE("another power limit makes the answer stale") {
  Tuned tuned;
  const Connection connection = tuned.daemon->connect();
  v1::GetVariantRequest request = question(connection, tiny_problem(2));
  request.mutable_device()->mutable_facts()->set_power_limit_mw(350'000);
  CHECK(departures(ask(connection, request)) == std::vector<int>{v1::STALE});
}

TEST_CASE("another toolchain makes the answer stale") {
  const auto older = cuda12_home();
  if (!older) {
    return skip_test("there is no NVRTC 12 on this machine");
  }
  Tuned tuned;
  REQUIRE(tuned.daemon->stop().has_value());
  tuned.daemon->options().cuda_home = *older;
  tuned.daemon->start();
  const v1::GetVariantReply reply = ask(tuned.daemon->connect(), tiny_problem(2));
  CHECK(departures(reply) == std::vector<int>{v1::STALE});
}

TEST_CASE("a driver that loads no cubin of the toolchain is refused with both versions") {
  TinyDaemon daemon;
  const Connection connection = daemon->connect();
  v1::GetVariantRequest request = question(connection, tiny_problem(2));
  request.mutable_device()->mutable_driver()->set_cuda(11080);
  request.mutable_device()->mutable_driver()->set_version("520.61.05");
  try {
    ask(connection, request);
    FAIL("answered");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::FailedPrecondition);
    CHECK(std::string(error.what()).find("11.8") != std::string::npos);
    CHECK(std::string(error.what()).find("nvrtc") != std::string::npos);
  }
}

}  // namespace
}  // namespace cubind::test
