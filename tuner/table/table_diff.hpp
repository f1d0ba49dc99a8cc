// The difference between two tables: the questions that they answer, the winners and the times.
#pragma once

#include <vector>

#include "tuner/table/table.hpp"

namespace cubind {

struct RecordChange {
  TableRecord before, after;
  bool winner_changed() const { return before.context.configuration != after.context.configuration; }
  /// The bytes that were measured, where both tables know them.
  bool cubin_changed() const {
    const Digest &a = before.context.artifact, &b = after.context.artifact;
    return !a.is_zero() && !b.is_zero() && a != b;
  }
  /// The change of the median; above 0: slower.
  double percent() const { return (after.timing.median_us() / before.timing.median_us() - 1) * 100; }
};

struct TableDiff {
  std::vector<TableRecord> only_before, only_after;  // in canonical order
  std::vector<RecordChange> changed;  // the winner, its cubin or the median; the worst slowdown first
  bool empty() const { return only_before.empty() && only_after.empty() && changed.empty(); }
  /// Changes that are slower by more.
  std::size_t count_above(double percent) const;
};

/// Pairs the records of a question (table_identity.hpp) with the same interface, driver branch and toolchain
/// major version. It pairs the rest of the question by rank (table_rank.hpp), so that a table of a new driver
/// is still compared with that of the old one.
TableDiff diff_tables(const Table& before, const Table& after);

}  // namespace cubind
