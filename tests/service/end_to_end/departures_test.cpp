// How answers depart from their questions, and what becomes of an answer when the world around it changes.
#include <catch2/catch.hpp>

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

}  // namespace
}  // namespace cubind::test
