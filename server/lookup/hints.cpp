#include "server/lookup/hints.hpp"

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

// Of the records of a problem the first by the question's flush method, or else any. Null: none will do.
RecordPtr one_to_begin_with(const std::vector<RecordPtr>& of_problem, const RecordQuestion& question) {
  RecordPtr found;
  for (const RecordPtr& record : of_problem) {
    if (!may_begin_with(*record, question)) {
      continue;
    }
    if (record->question.policy == question.policy) {
      return record;
    }
    found = record;
  }
  return found;
}

void add_neighbours(const ClassRecords& records, const RecordQuestion& question, double further,
                    std::vector<Neighbour>& neighbours) {
  for (const auto& [name, of_problem] : records.by_problem) {
    const auto distance = KernelSpec::distance(of_problem.front()->question.problem, question.problem);
    const RecordPtr record = distance ? one_to_begin_with(of_problem, question) : nullptr;
    if (record) {
      neighbours.push_back({*distance + further, record});
    }
  }
}

// Nearest first.
std::vector<Neighbour> neighbours_of(const Question& question, const RecordGroup& group,
                                     const IndexSnapshot& index) {
  const bool replayed = !question.device.facts.replay_table().empty();
  std::vector<Neighbour> neighbours;
  for (const auto& [digest, records] : group) {
    const DeviceClass* device = index.device(digest);
    if (digest == question.key.device_class) {
      add_neighbours(*records, question.key, 0, neighbours);
    } else if (device && device->facts.replay_table().empty() != replayed) {
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
    if (todays && found_.size() < kMostHints && std::ranges::find(found_, *todays) == found_.end()) {
      found_.push_back(*std::move(todays));
    }
  }
  std::vector<Configuration> take() && { return std::move(found_); }

 private:
  const KernelSpec& spec_;
  std::vector<Configuration> found_;
};

}  // namespace

std::vector<Configuration> search_hints(const Question& question, const IndexSnapshot& index,
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
  for (std::size_t rank = 0; rank < kMostHints; ++rank) {
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
