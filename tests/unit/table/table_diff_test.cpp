#include "tuner/table/table_diff.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/table/random_table.hpp"

namespace cubind::test {
namespace {

Table at(const std::vector<std::pair<std::int64_t, double>>& sizes_and_times) {
  Table table = example_table();
  table.records.clear();
  for (const auto& [size, time_us] : sizes_and_times) {
    TableRecord record = example_table().records[0];
    record.context.problem.dims[0].value = size;
    record.timing.set_median_us(time_us);
    record.timing.set_low_us(time_us);
    record.timing.set_high_us(time_us);
    table.records.push_back(record);
  }
  return table;
}

TEST_CASE("a table does not differ from itself") {
  CHECK(diff_tables(example_table(), example_table()).empty());
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    Random random(seed);
    const Table table = random_table(random);
    INFO("seed " << seed);
    CHECK(diff_tables(table, table).empty());
    CHECK(diff_tables(table, read_table(print_table(table), "t.json")).empty());
  }
}

TEST_CASE("questions that one table alone answers are reported by size") {
  const TableDiff diff = diff_tables(at({{1024, 2}, {128, 2}, {1, 2}}), at({{1, 2}, {8, 2}}));
  REQUIRE(diff.only_before.size() == 2);
  CHECK(diff.only_before[0].context.problem.dim("N") == 128);
  REQUIRE(diff.only_after.size() == 1);
  CHECK(diff.only_after[0].context.problem.dim("N") == 8);
  CHECK(diff.changed.empty());
}

TEST_CASE("changed times come with what slowed down most first") {
  const TableDiff diff =
      diff_tables(at({{1, 2}, {2, 2}, {4, 2}, {8, 2}}), at({{1, 1}, {2, 3}, {4, 2}, {8, 2.02}}));
  REQUIRE(diff.changed.size() == 3);
  CHECK(diff.changed[0].percent() == Approx(50));
  CHECK(diff.changed[1].percent() == Approx(1));
  CHECK(diff.changed[2].percent() == Approx(-50));
  CHECK(diff.count_above(2) == 1);
  CHECK(diff.count_above(0) == 2);
}

TEST_CASE("other bytes of the same winner are a change where both tables know them") {
  Table before = example_table(), after = example_table();
  before.records[0].context.artifact = Digest::of("compiled before");
  after.records[0].context.artifact = Digest::of("compiled after an upgrade");
  const TableDiff diff = diff_tables(before, after);
  REQUIRE(diff.changed.size() == 1);
  CHECK(diff.changed[0].cubin_changed());
  CHECK_FALSE(diff.changed[0].winner_changed());
  after.records[0].context.artifact = {};
  CHECK(diff_tables(before, after).empty());
}

TEST_CASE("another winner is a change also at the same time") {
  Table after = example_table();
  after.records[0].context.configuration.values[0].value = 256;
  const TableDiff diff = diff_tables(example_table(), after);
  REQUIRE(diff.changed.size() == 1);
  CHECK(diff.changed[0].winner_changed());
  CHECK(diff.changed[0].percent() == 0);
}

TEST_CASE("a record of a new driver is compared with that of the old one") {
  Table after = at({{1, 3}});
  after.records[0].context.driver = "590.10";
  const TableDiff diff = diff_tables(at({{1, 2}}), after);
  CHECK(diff.only_before.empty());
  CHECK(diff.only_after.empty());
  REQUIRE(diff.changed.size() == 1);
  CHECK(diff.changed[0].percent() == Approx(50));
}

TEST_CASE("rows of the same driver branch are compared before others of the question") {
  Table both = at({{1, 2}, {1, 3}});
  both.records[0].context.driver = "590.10";
  Table after = at({{1, 3}});
  const TableDiff diff = diff_tables(both, after);
  CHECK(diff.changed.empty());
  REQUIRE(diff.only_before.size() == 1);
  CHECK(diff.only_before[0].context.driver == "590.10");
}

TEST_CASE("what differs in date and evidence alone is no difference") {
  Table after = example_table();
  after.records[0].timing.set_measured_at("2027-01-01T00:00:00Z");
  after.records[0].evidence = Evidence::Imported;
  CHECK(diff_tables(example_table(), after).empty());
}

}  // namespace
}  // namespace cubind::test
