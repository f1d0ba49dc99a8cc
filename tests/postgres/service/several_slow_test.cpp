// The acceptance run: three daemons on one database. CUBIND_KILLS sets another number of kills, for a machine
// that is busy.
#include <catch2/catch.hpp>

#include <cstdlib>

#include "tests/postgres/service/several_daemons.hpp"

namespace cubind::test {
namespace {

TEST_CASE("over 1024 connections three daemons tune each of 200 cold keys once and give the same bytes") {
  check_cold_keys(200, 1024);
}

TEST_CASE("200 killed daemons and 20 restarts of the database and a minute without it lose nothing") {
  const char* wanted = std::getenv("CUBIND_KILLS");
  const std::size_t kills = wanted != nullptr ? std::strtoul(wanted, nullptr, 10) : 200;
  check_blows(100, {.kills = kills, .restarts = kills / 10, .cut_off = std::chrono::minutes(1)}, 7);
}

}  // namespace
}  // namespace cubind::test
