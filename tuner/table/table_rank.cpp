#include "tuner/table/table_rank.hpp"

#include <string>
#include <tuple>

namespace cubind {
namespace {

int strength(const TableRecord& record) {
  switch (record.evidence) {
    case Evidence::Measured:
      return record.provisional ? 5 : 6;
    case Evidence::Imported:
      return record.provisional ? 3 : 4;
    case Evidence::Shipped:
      return 2;
    case Evidence::Replayed:
      return 1;
    case Evidence::None:
      return 0;
  }
  return 0;
}

// RFC 3339 in UTC sorts as text once the fraction has no zeros at its end and no Z, which would sort after
// it.
std::string instant(const std::string& date) {
  std::string text = date.ends_with('Z') ? date.substr(0, date.size() - 1) : date;
  if (text.find('.') == std::string::npos) {
    return text;
  }
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) {
    text.pop_back();
  }
  return text;
}

auto merit(const TableRecord& record) {
  return std::tuple(strength(record), instant(record.timing.measured_at()), -record.timing.median_us());
}

std::size_t count_samples(const std::vector<SampleBlock>& blocks) {
  std::size_t count = 0;
  for (const SampleBlock& block : blocks) {
    count += static_cast<std::size_t>(block.samples_us_size());
  }
  return count;
}

auto merit(const TableTrial& trial) {
  const int outcome = trial.outcome == Outcome::WrongResult ? 2 : trial.outcome == Outcome::Correct ? 1 : 0;
  return std::tuple(outcome, count_samples(trial.finals), count_samples(trial.screening),
                    trial.verifications.size(), trial.samples);
}

// A merge asks this for each row that two tables share, and most of these are equal.
template <typename Row>
bool outranks_by_merit(const Row& a, const Row& b) {
  const auto merit_a = merit(a), merit_b = merit(b);
  if (merit_a != merit_b) {
    return merit_a > merit_b;
  }
  return canonical_bytes(a) < canonical_bytes(b);
}

}  // namespace

bool outranks(const TableRecord& a, const TableRecord& b) { return outranks_by_merit(a, b); }
bool outranks(const TableTrial& a, const TableTrial& b) { return outranks_by_merit(a, b); }
bool outranks(const TableDevice& a, const TableDevice& b) { return canonical_bytes(a) < canonical_bytes(b); }

}  // namespace cubind
