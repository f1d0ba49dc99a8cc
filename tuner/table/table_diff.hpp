// What differs between two tables: which questions they answer, with which winner, and how fast.
#pragma once

#include <vector>

#include "tuner/table/table.hpp"

namespace cubind {

struct RecordChange {
  TableRecord before, after;
  bool winner_changed() const { return before.context.configuration != after.context.configuration; }
  /// Of the median; above 0: slower.
  double percent() const { return (after.timing.median_us / before.timing.median_us - 1) * 100; }
};

struct TableDiff {
  std::vector<TableRecord> only_before, only_after;  // in canonical order
  std::vector<RecordChange> changed;                 // the winner or the median; the most slowed down first
  bool empty() const { return only_before.empty() && only_after.empty() && changed.empty(); }
  /// Changes that are slower by more.
  std::size_t count_above(double percent) const;
};

/// Pairs the records of a question (table_identity.hpp) with the same interface, driver branch and toolchain
/// major version; what is left of the question by rank (table_rank.hpp), so that a table of a new driver
/// still is compared with that of the old one.
TableDiff diff_tables(const Table& before, const Table& after);

}  // namespace cubind
