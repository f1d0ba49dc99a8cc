#include "tuner/table/table_diff.hpp"

#include <algorithm>
#include <map>

#include "tuner/table/table_identity.hpp"
#include "tuner/table/table_rank.hpp"

namespace cubind {
namespace {

struct Rows {
  std::vector<TableRecord> before, after;
};

// The rows of one question.
class Pairing {
 public:
  Pairing(Rows rows, TableDiff& diff) : rows_(std::move(rows)), diff_(diff) {
    for (auto* side : {&rows_.before, &rows_.after}) {
      std::ranges::sort(*side, [](const auto& a, const auto& b) { return outranks(a, b); });
    }
  }

  void run() {
    pair_if([](const TableRecord& a, const TableRecord& b) { return identity_of(a) == identity_of(b); });
    pair_if([](const TableRecord&, const TableRecord&) { return true; });
    diff_.only_before.insert(diff_.only_before.end(), rows_.before.begin(), rows_.before.end());
    diff_.only_after.insert(diff_.only_after.end(), rows_.after.begin(), rows_.after.end());
  }

 private:
  template <typename Fits>
  void pair_if(const Fits& fits) {
    std::erase_if(rows_.before, [&](const TableRecord& before) {
      const auto found =
          std::ranges::find_if(rows_.after, [&](const auto& row) { return fits(before, row); });
      if (found == rows_.after.end()) {
        return false;
      }
      add({before, *found});
      rows_.after.erase(found);
      return true;
    });
  }

  void add(const RecordChange& change) {
    if (change.winner_changed() || change.cubin_changed() ||
        change.before.timing.median_us() != change.after.timing.median_us()) {
      diff_.changed.push_back(change);
    }
  }

  Rows rows_;
  TableDiff& diff_;
};

}  // namespace

std::size_t TableDiff::count_above(double percent) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(changed, [&](const auto& change) { return change.percent() > percent; }));
}

TableDiff diff_tables(const Table& before, const Table& after) {
  std::map<TableQuestion, Rows> questions;
  for (const TableRecord& record : before.records) {
    questions[question_of(record)].before.push_back(record);
  }
  for (const TableRecord& record : after.records) {
    questions[question_of(record)].after.push_back(record);
  }
  TableDiff diff;
  for (auto& [question, rows] : questions) {
    Pairing(std::move(rows), diff).run();
  }
  std::ranges::sort(diff.only_before, prints_before);
  std::ranges::sort(diff.only_after, prints_before);
  std::ranges::sort(diff.changed, [](const RecordChange& a, const RecordChange& b) {
    const double left = a.percent(), right = b.percent();
    return left != right ? left > right : prints_before(a.after, b.after);
  });
  return diff;
}

}  // namespace cubind
