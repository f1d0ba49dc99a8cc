#include "server/lookup/warm_start.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "tuner/spec/todays_terms.hpp"

namespace cubind {
namespace {

constexpr std::size_t kNeighbours = 4;
constexpr double kOtherClass = 2;  // how much further away another device class is

struct Neighbour {
  double distance = 0;
  RecordPtr record;
};

// Not what a search of the same question has found on this device: with it, a larger budget would not go on
// where a smaller one ended.
bool may_begin_with(const RecordRow& record, const RecordQuestion& question) {
  return record.question.problem != question.problem ||
         record.question.device_class != question.device_class || !was_measured_here(record) ||
         record.question.policy != question.policy;
}

// One record of each problem, by the question's flush method where there is one.
void add_neighbours(const ClassRecords& records, const RecordQuestion& question, double further,
                    std::vector<Neighbour>& neighbours) {
  const RecordRow* last = nullptr;
  for (const RecordPtr& record : records.records) {
    const auto distance = KernelSpec::distance(record->question.problem, question.problem);
    if (!distance || !may_begin_with(*record, question)) {
      continue;
    }
    if (!last || last->question.problem != record->question.problem) {
      neighbours.push_back({*distance + further, record});
    } else if (neighbours.back().record->question.policy != question.policy) {
      neighbours.back().record = record;
    }
    last = record.get();
  }
}

// Nearest first.
std::vector<Neighbour> neighbours_of(const Question& question, const RecordGroup& group,
                                     const IndexSnapshot& index) {
  const bool replayed = !question.device.facts.replay_table.empty();
  std::vector<Neighbour> neighbours;
  for (const auto& [digest, records] : group) {
    const DeviceClass* device = index.device(digest);
    if (digest == question.key.device_class) {
      add_neighbours(*records, question.key, 0, neighbours);
    } else if (device && device->facts.replay_table.empty() != replayed) {
      add_neighbours(*records, question.key, kOtherClass, neighbours);
    }
  }
  std::ranges::sort(neighbours, {},
                    [](const Neighbour& one) { return std::pair(one.distance, one.record->id); });
  return neighbours;
}

// Each of today's configurations once.
class Found {
 public:
  explicit Found(const KernelSpec& spec) : spec_(spec) {}

  void add(const Configuration& configuration) {
    auto todays = in_todays_terms(spec_, configuration);
    if (todays && found_.size() < kWarmStart && std::ranges::find(found_, *todays) == found_.end()) {
      found_.push_back(*std::move(todays));
    }
  }
  std::vector<Configuration> take() && { return std::move(found_); }

 private:
  const KernelSpec& spec_;
  std::vector<Configuration> found_;
};

}  // namespace

std::vector<Configuration> warm_start(const Question& question, const IndexSnapshot& index,
                                      const TriedFor& tried_for) {
  const RecordGroup* group = index.group(question.key);
  if (!group) {
    return {};
  }
  const std::vector<Neighbour> neighbours = neighbours_of(question, *group, index);
  std::vector<std::vector<Configuration>> lists;
  for (const Neighbour& one : std::span(neighbours).first(std::min(neighbours.size(), kNeighbours))) {
    std::vector<Configuration>& list = lists.emplace_back(tried_for(*one.record));
    std::erase(list, one.record->configuration);
    list.insert(list.begin(), one.record->configuration);
  }
  Found found(*question.spec);
  for (std::size_t rank = 0; rank < kWarmStart; ++rank) {
    for (const std::vector<Configuration>& list : lists) {
      if (rank < list.size()) {
        found.add(list[rank]);
      }
    }
  }
  for (const Neighbour& one : neighbours) {
    found.add(one.record->configuration);
  }
  return std::move(found).take();
}

}  // namespace cubind
