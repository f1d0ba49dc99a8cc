// Faults of a device, injected below everything: what becomes of the configuration, and that the job goes on.
#include <catch2/catch.hpp>

#include "plan/wire.hpp"
#include "tests/support/facts.hpp"
#include "tests/support/tiny_daemon.hpp"

namespace cubind::test {
namespace {

// Twice as fast as anything else: it wins unless something keeps it from winning.
const Configuration kFavourite{{{"THREADS", 64}, {"VECTOR", 2}}};

void favour(Table& table) {
  TableTrial& trial = trial_of(table, tiny_problem(2), kFavourite);
  trial.screening = {test::block_of({10, 10, 10})};
  trial.finals = {test::block_of(std::vector<double>(32, 10.0))};
}

std::string fault(const std::string& at, const std::string& kind, const std::string& more = "") {
  return R"([{"at": ")" + at + R"(", "fault": ")" + kind +
         R"(", "configuration": {"THREADS": 64, "VECTOR": 2})" + more + "}]";
}

constexpr const char* kOnce = R"(, "times": 1)";

TEST_CASE("a foreign process on the GPU ends the wait of those who ask and the job goes on when it is gone") {
  TinyDaemon daemon({.edit_table = favour, .faults = fault("measure", "foreign_process", kOnce)});
  const Connection connection = daemon->connect();
  v1::GetVariantRequest request = question(connection, tiny_problem(2));
  request.set_on_miss(v1::WAIT);
  const v1::GetVariantReply reply = connection.get_variant(request, kPatience);
  CHECK(reply.job_state() == "waiting_for_idle_gpu");
  REQUIRE(reply.provenance().departures_size() == 1);
  CHECK(reply.provenance().departures(0) == v1::DEFAULT_CONFIGURATION);
  CHECK(eventually([&] {
    return connection.get_variant(question(connection, tiny_problem(2)), kPatience)
        .provenance()
        .departures()
        .empty();
  }));
  const v1::GetVariantReply later = connection.get_variant(question(connection, tiny_problem(2)), kPatience);
  CHECK(configuration_from_wire(later.configuration(), "configuration") == kFavourite);
}

TEST_CASE("what was measured next to a foreign process is provisional until the GPU is idle") {
  // The favourite's two blocks of screening and three of its rounds.
  TinyDaemon daemon({.edit_table = favour,
                     .faults = fault("measure", "contended", R"(, "times": 5)"),
                     .arguments = {"--tune-when", "always"}});
  const Connection connection = daemon->connect();
  const auto ended = tune(connection, {tiny_problem(2)});
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].provenance().timing().contended());
  CHECK(ended[0].provenance().provisional());
  CHECK(eventually([&] {
    const auto reply = connection.get_variant(question(connection, tiny_problem(2)), kPatience);
    return !reply.provenance().provisional() && !reply.provenance().timing().contended();
  }));
  CHECK(connection.get_status(kPatience).records() == 1);
}

}  // namespace
}  // namespace cubind::test
