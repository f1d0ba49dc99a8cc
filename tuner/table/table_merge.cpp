#include "tuner/table/table_merge.hpp"

#include <map>
#include <string_view>

#include "base/error.hpp"
#include "tuner/table/table_identity.hpp"
#include "tuner/table/table_rank.hpp"

namespace cubind {
namespace {

Digest identity_of(const TableDevice& device) { return device.device_class; }

// The parts of a trial key that its row repeats.
bool may_share_key(const TableTrial& a, const TableTrial& b) {
  return a.context.problem == b.context.problem && a.context.device_class == b.context.device_class &&
         a.context.policy == b.context.policy &&
         driver_branch(a.context.driver) == driver_branch(b.context.driver);
}
// The identity of these rows is all of their key.
bool may_share_key(const TableRecord&, const TableRecord&) { return true; }
bool may_share_key(const TableDevice&, const TableDevice&) { return true; }

template <typename Row>
class Merged {
 public:
  explicit Merged(std::string_view list) : list_(list) {}

  void add(const std::vector<Row>& rows, const std::string& file) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::string where = file + " /" + list_ + "/" + std::to_string(i);
      const auto [known, added] = chosen_.try_emplace(identity_of(rows[i]), Chosen{&rows[i], where});
      if (added) {
        continue;
      }
      Chosen& chosen = known->second;
      if (!may_share_key(*chosen.row, rows[i])) {
        throw Error(ErrorCode::InvalidArgument, where,
                    "has the trial key of " + chosen.where +
                        " with another problem, device, policy or driver branch: one of the two was changed "
                        "by hand; measure it again");
      }
      if (outranks(rows[i], *chosen.row)) {
        chosen = {&rows[i], where};
      }
    }
  }

  std::vector<Row> take() const {
    std::vector<Row> rows;
    for (const auto& [identity, chosen] : chosen_) {
      rows.push_back(*chosen.row);
    }
    return rows;
  }

 private:
  struct Chosen {
    const Row* row;
    std::string where;
  };
  std::string list_;
  std::map<decltype(identity_of(std::declval<const Row&>())), Chosen> chosen_;
};

}  // namespace

Table merge_tables(std::span<const NamedTable> tables) {
  Merged<TableDevice> devices("devices");
  Merged<TableRecord> records("records");
  Merged<TableTrial> trials("trials");
  for (const NamedTable& named : tables) {
    devices.add(named.table.devices, named.file);
    records.add(named.table.records, named.file);
    trials.add(named.table.trials, named.file);
  }
  Table merged{devices.take(), records.take(), trials.take()};
  sort_table(merged);
  return merged;
}

}  // namespace cubind
