// Three daemons on one database, for half a minute.
#include <catch2/catch.hpp>

#include "tests/postgres/service/several_daemons.hpp"

namespace cubind::test {
namespace {

TEST_CASE("three daemons tune each cold key once and give all callers the same bytes") {
  check_cold_keys(8, 32);
}

TEST_CASE("daemons that are killed and a database that goes away lose and double nothing") {
  check_blows(8, {.kills = 4, .restarts = 2, .cut_off = std::chrono::seconds(3)}, 1);
}

TEST_CASE("status names the other daemons and how far behind them this one is") {
  SeveralDaemons all({tiny_problem(2)}, 0);
  v1::GetStatusReply status;
  REQUIRE(eventually([&] {
    status = (*all.daemons[0])->connect().get_status(kPatience);
    return status.peers_size() == 2;
  }));
  CHECK_THAT(status.peers(0) + status.peers(1),
             Catch::Matchers::Contains("cubind pid " + std::to_string((*all.daemons[1])->pid())) &&
                 Catch::Matchers::Contains("cubind pid " + std::to_string((*all.daemons[2])->pid())));
  CHECK(status.store_path() == all.url);
  CHECK(status.store_lag_ms() > 0);
  CHECK(eventually([&] { return (*all.daemons[0])->connect().get_status(kPatience).store_lag_ms() < 5000; }));
  const auto killed = all.daemons[1]->operator->();
  killed->kill();
  killed->reap();
  CHECK(eventually([&] { return (*all.daemons[0])->connect().get_status(kPatience).peers_size() == 1; }));
}

}  // namespace
}  // namespace cubind::test
