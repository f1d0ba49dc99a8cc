#include "tuner/table/table_merge.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

#include "base/error.hpp"
#include "tests/unit/table/random_table.hpp"

namespace cubind::test {
namespace {

Table merge(const Table& a, const Table& b) {
  return merge_tables(std::vector<NamedTable>{{"a.json", a}, {"b.json", b}});
}

// The record that stands, of two that differ as `edit` says.
template <typename Edit>
TableRecord winner(const Edit& edit) {
  Table a = example_table(), b = example_table();
  edit(a.records[0], b.records[0]);
  const Table merged = merge(a, b);
  REQUIRE(merged.records.size() == 1);
  CHECK(print_table(merged) == print_table(merge(b, a)));
  return merged.records[0];
}

// Tables in canonical order.
Table sorted(Table table) {
  sort_table(table);
  return table;
}

TEST_CASE("merging random tables is associative and commutative and idempotent") {
  for (std::uint64_t seed = 0; seed < 32; ++seed) {
    Random random(seed);
    const Table a = random_table(random), b = random_table(random), c = random_table(random);
    INFO("seed " << seed);
    const Table all = merge(a, merge(b, c));
    CHECK(merge(a, b) == merge(b, a));
    CHECK(all == merge(merge(a, b), c));
    CHECK(all == merge_tables(std::vector<NamedTable>{{"c", c}, {"a", a}, {"b", b}}));
    CHECK(merge(a, a) == sorted(a));
    CHECK(merge(all, b) == all);
  }
}

TEST_CASE("tables that were merged in any order print the same bytes") {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    Random random(seed);
    const Table a = random_table(random), b = random_table(random), c = random_table(random);
    INFO("seed " << seed);
    CHECK(print_table(merge(a, merge(b, c))) == print_table(merge(merge(c, b), a)));
    CHECK(print_table(merge(a, a)) == print_table(a));
  }
}

TEST_CASE("what random tables merge to can be read and has every identity once") {
  std::size_t replaced = 0;
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    Random random(seed);
    const Table a = random_table(random), b = random_table(random);
    const Table merged = merge(a, b);
    CHECK(print_table(read_table(print_table(merged), "merged.json")) == print_table(merged));
    std::set<RecordIdentity> identities;
    for (const Table& table : {a, b}) {
      for (const TableRecord& record : table.records) {
        identities.insert(identity_of(record));
      }
    }
    CHECK(merged.records.size() == identities.size());
    replaced += a.records.size() + b.records.size() - identities.size();
  }
  CHECK(replaced > 10);  // else the tables hardly met
}

TEST_CASE("in random tables no imported row replaces a measured one") {
  std::size_t met = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    const Table a = random_table(random), b = random_table(random);
    const Table merged = merge(a, b);
    for (const TableRecord& before : a.records) {
      if (before.evidence != Evidence::Measured) {
        continue;
      }
      const auto same = [&](const auto& row) { return identity_of(row) == identity_of(before); };
      const auto after = std::ranges::find_if(merged.records, same);
      REQUIRE(after != merged.records.end());
      CHECK(after->evidence == Evidence::Measured);
      CHECK((before.provisional || !after->provisional));
      met += std::ranges::count_if(b.records, same);
    }
  }
  CHECK(met > 50);
}

TEST_CASE("a measured row stands however old and slow the imported one makes it look") {
  const TableRecord record = winner([](TableRecord& measured, TableRecord& imported) {
    imported.evidence = Evidence::Imported;
    imported.timing.set_measured_at("2027-01-01T00:00:00Z");
    imported.timing.set_median_us(1);
    imported.timing.set_low_us(1);
    measured.provisional = true;
  });
  CHECK(record.evidence == Evidence::Measured);
}

TEST_CASE("an imported row stands before a shipped one") {
  const TableRecord record = winner([](TableRecord& imported, TableRecord& shipped) {
    imported.evidence = Evidence::Imported;
    shipped.evidence = Evidence::Shipped;
    shipped.timing.set_measured_at("2027-01-01T00:00:00Z");
  });
  CHECK(record.evidence == Evidence::Imported);
}

TEST_CASE("a row that had the GPU to itself stands before a provisional one") {
  const TableRecord record = winner([](TableRecord& alone, TableRecord& provisional) {
    provisional.provisional = true;
    provisional.timing.set_contended(true);
    provisional.timing.set_measured_at("2027-01-01T00:00:00Z");
    alone.timing.set_samples(7);
  });
  CHECK(record.timing.samples() == 7);
}

TEST_CASE("of two measured rows the newer one stands and then the faster one") {
  CHECK(winner([](TableRecord& newer, TableRecord& older) {
          newer.timing.set_measured_at("2026-01-02T03:04:05.5Z");
          newer.timing.set_samples(7);
          older.timing.set_median_us(1);
          older.timing.set_low_us(1);
        }).timing.samples() == 7);
  CHECK(winner([](TableRecord& slower, TableRecord& faster) {
          slower.timing.set_measured_at("2026-01-02T03:04:05.000Z");
          faster.timing.set_median_us(1);
          faster.timing.set_low_us(1);
          faster.timing.set_samples(7);
        }).timing.samples() == 7);
}

TEST_CASE("driver branches and toolchain major versions and interfaces keep rows of their own") {
  Table b = example_table();
  b.records[0].context.driver = "590.10";
  CHECK(merge(example_table(), b).records.size() == 2);
  b = example_table();
  b.records[0].context.toolchain.name = "nvrtc 12.8";
  CHECK(merge(example_table(), b).records.size() == 2);
  b = example_table();
  b.records[0].interface = Digest::of("another");
  CHECK(merge(example_table(), b).records.size() == 2);
}

TEST_CASE("of two trials with one key the wrong result stands and else the one with more samples") {
  Table a = example_table(), b = example_table();
  a.trials[1].outcome = Outcome::WrongResult;
  CHECK(merge(a, b).trials[0].outcome == Outcome::WrongResult);
  a = example_table();
  a.trials[1].finals.clear();
  a.trials[1].screening.clear();
  CHECK(merge(a, b).trials[0].finals == b.trials[1].finals);
  CHECK(merge(b, a).trials[0].finals == b.trials[1].finals);
}

TEST_CASE("device classes are merged by their digest whatever their power limit") {
  Table b = example_table();
  b.devices[0].facts.set_power_limit_mw(500000);
  const Table merged = merge(example_table(), b);
  CHECK(merged.devices.size() == 1);
  CHECK(merged.records.size() == 1);
}

TEST_CASE("a trial key that stands for two problems is an error that names both places") {
  Table b = example_table();
  b.trials[1].context.problem.dims[0].value = 8;
  CHECK_THROWS_WITH(merge(example_table(), b),
                    Catch::Contains("b.json /trials/1: has the trial key of a.json /trials/1 with another"));
  CHECK_THROWS_AS(merge(b, merge(example_table(), Table{})), Error);
  CHECK_THROWS_AS(merge(merge(Table{}, b), example_table()), Error);
}

TEST_CASE("nothing merges to nothing and one table to itself in canonical order") {
  CHECK(merge_tables({}) == Table{});
  const std::vector<NamedTable> one{{"a.json", example_table()}};
  CHECK(print_table(merge_tables(one)) == print_table(example_table()));
  CHECK(merge_tables(one).trials[0].context.configuration.value("THREADS") == 128);
}

}  // namespace
}  // namespace cubind::test
