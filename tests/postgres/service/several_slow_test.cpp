// The acceptance run: three daemons on one database.
#include <catch2/catch.hpp>

#include "tests/postgres/service/several_daemons.hpp"

namespace cubind::test {
namespace {

TEST_CASE("over 1024 connections three daemons tune each of 200 cold keys once and give the same bytes") {
  check_cold_keys(200, 1024);
}

TEST_CASE("200 killed daemons and 20 restarts of the database and a minute without it lose nothing") {
  check_blows(200, {.kills = 200, .restarts = 20, .cut_off = std::chrono::minutes(1)}, 7);
}

}  // namespace
}  // namespace cubind::test
