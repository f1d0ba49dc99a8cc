// A compiled entry takes or allows less than the spec plans: what a check, a job and a caller are reported.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "plan/wire.hpp"
#include "tests/support/refusal_of.hpp"
#include "tests/support/tiny_daemon.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

constexpr const char* kPlain = "const T* x, T* y, long long N";

struct Changes {
  std::string attributes = "";              // of the entry
  std::string parameters = kPlain;          // of the entry
  std::vector<std::int64_t> defaults = {};  // of THREADS; empty: 128
};

/// The tiny kernel, changed, with its table.
class ChangedDaemon {
 public:
  explicit ChangedDaemon(const Changes& changes) : daemon_({}, false) {
    write(changes);
    daemon_->start();
  }

  void write(const Changes& changes) {
    write_file_atomic(daemon_.kernels() / "scale.cu",
                      "struct Pair { long long a, b; };\n"
                      "template <typename T, int THREADS, int VECTOR, int K>\n"
                      "__global__ void " +
                          changes.attributes + " scale(" + changes.parameters + ") {}\n");
    OrderedJson spec = OrderedJson::parse(read_file(daemon_.kernels() / "scale.json"));
    if (!changes.defaults.empty()) {
      spec["default"] = OrderedJson::array();
    }
    for (const std::int64_t threads : changes.defaults) {
      spec["default"].push_back({{"THREADS", threads}, {"VECTOR", 1}});
    }
    write_file_atomic(daemon_.kernels() / "scale.json", spec.dump());
  }

  TinyDaemon& operator*() { return daemon_; }
  Connection connect() { return daemon_->connect(); }

  /// Starts no job.
  v1::GetVariantReply ask(std::int64_t n = 4096) {
    const Connection connection = connect();
    v1::GetVariantRequest request = question(connection, tiny_problem(2, n));
    request.set_tune(v1::NEVER);
    return connection.get_variant(request, kPatience);
  }
  std::string refusal(std::int64_t n = 4096) {
    const auto error = error_of([&] { ask(n); });
    CHECK((!error || error->code() == ErrorCode::FailedPrecondition));
    return error ? error->what() : "";
  }
  std::string refused_check() {
    return refusal_of([&] { connect().check_kernel(daemon_.check_request(), kPatience); });
  }
  v1::TuneEvent tuned() { return tune(connect(), {tiny_problem(2)}).at(0); }

 private:
  TinyDaemon daemon_;
};

std::int64_t threads_of(const v1::Configuration& configuration) {
  return configuration_from_wire(configuration, "configuration").value("THREADS").value();
}

TEST_CASE("a default of more threads than its launch bounds is not served and the next one is") {
  ChangedDaemon daemon({.attributes = "__launch_bounds__(64)"});
  const std::string why = daemon.refusal();
  CHECK_THAT(why, Contains("scale.json /launches/0/block: scale<float, 128, 1, 2> is launched with blocks of "
                           "128 x 1 x 1 threads, the entry is compiled for at most 64 threads per block"));
  CHECK_THAT(why, Contains("THREADS=128,VECTOR=1"));
  ChangedDaemon with_another({.attributes = "__launch_bounds__(64)", .defaults = {256, 64, 128}});
  const v1::GetVariantReply reply = with_another.ask();
  CHECK(threads_of(reply.configuration()) == 64);
  CHECK(reply.provenance().departures(0) == v1::DEFAULT_CONFIGURATION);
  CHECK_FALSE(reply.artifact().zstd_cubin().empty());
}

TEST_CASE("configurations beyond the launch bounds end as constraint and the others are measured") {
  ChangedDaemon daemon({.attributes = "__launch_bounds__(64)"});
  const v1::TuneEvent end = daemon.tuned();
  REQUIRE(end.job().state() == v1::Job::DONE);
  CHECK(threads_of(end.winner()) <= 64);
  for (const v1::OutcomeCount& count : end.job().outcomes()) {
    CHECK((count.outcome() != v1::CONSTRAINT || count.count() == 6));
  }
  CHECK_THAT(end.job().ShortDebugString(), Contains("CONSTRAINT"));
  CHECK(daemon.ask().provenance().evidence() == v1::REPLAYED);
}

TEST_CASE("a required block that differs is named with the planned one") {
  ChangedDaemon daemon({.attributes = "__block_size__((64, 2, 1))"});
  for (const std::string& why : {daemon.refusal(), daemon.refused_check()}) {
    CHECK_THAT(why, Contains("blocks of 128 x 1 x 1 threads") &&
                        Contains("for blocks of 64 x 2 x 1 threads and no others"));
  }
}

TEST_CASE("a fixed cluster is served where the grid is a multiple of it and nowhere else") {
  ChangedDaemon daemon({.attributes = "__cluster_dims__(2, 1, 1)"});
  CHECK_FALSE(daemon.ask(4096).artifact().zstd_cubin().empty());
  CHECK_THAT(daemon.refusal(3 * 128),
             Contains("/launches/0/grid: ") && Contains("a grid of 3 x 1 x 1") && Contains("2 x 1 x 1"));
}

TEST_CASE("a value of another size than the scalar ends check and job and question before a launch") {
  for (const auto& [parameters, told] :
       {std::pair("const T* x, T* y, Pair N", "Pair of 16 bytes"),
        std::pair("const T* x, T* y, uint3 N", "uint3 of 12 bytes"),
        std::pair("const T* x, T* y, const long long& N", "long long const&"),
        std::pair("const T* x, float4 y, long long N", "float4 of 16 bytes")}) {
    INFO(parameters);
    ChangedDaemon daemon({.parameters = parameters});
    const v1::TuneEvent end = daemon.tuned();
    CHECK(end.job().state() == v1::Job::FAILED);
    CHECK((*daemon).measured_blocks().empty());
    for (const std::string& why : {end.job().error(), daemon.refused_check(), daemon.refusal()}) {
      CHECK_THAT(why, Contains("scale.json /launches/0/arguments/") &&
                          Contains(std::string("the entry's parameter is ") + told));
    }
  }
}

TEST_CASE("a record answers with other bytes only where they can be launched") {
  ChangedDaemon daemon({});
  const v1::TuneEvent end = daemon.tuned();
  REQUIRE(end.job().state() == v1::Job::DONE);
  const std::int64_t won = threads_of(end.winner());
  REQUIRE(won > 32);
  daemon.write({.defaults = {32}});
  REQUIRE(eventually([&] { return daemon.ask().provenance().evidence() == v1::REPLAYED; }));
  daemon.write({.attributes = "__launch_bounds__(32)", .defaults = {32}});
  REQUIRE(eventually([&] { return threads_of(daemon.ask().configuration()) == 32; }));
  CHECK(daemon.ask().provenance().evidence() == v1::NONE);
}

}  // namespace
}  // namespace cubind::test
