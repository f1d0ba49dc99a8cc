#include "server/lookup/warm_start.hpp"

#include <algorithm>
#include <tuple>

#include "tuner/spec/todays_terms.hpp"

namespace cubind {
namespace {

constexpr std::size_t kOwnWinners = 4;
constexpr std::size_t kOtherWinners = 2;

using Neighbours = std::vector<std::tuple<double, std::int64_t, RecordPtr>>;  // distance, id

// Not what a search of the same question has found on this device: with it, a larger budget would not go on
// where a smaller one ended.
bool may_begin_with(const RecordRow& record, const RecordQuestion& question) {
  return record.question.problem != question.problem ||
         record.question.device_class != question.device_class || !was_measured_here(record) ||
         record.question.policy != question.policy;
}

void add_neighbours(const ClassRecords& records, const RecordQuestion& question, Neighbours& neighbours) {
  for (const RecordPtr& record : records.records) {
    const auto distance = KernelSpec::distance(record->question.problem, question.problem);
    if (distance && may_begin_with(*record, question)) {
      neighbours.emplace_back(*distance, record->id, record);
    }
  }
}

class WarmStart {
 public:
  WarmStart(const KernelSpec& spec, const TrialConfiguration& configuration_of)
      : spec_(spec), configuration_of_(configuration_of) {}

  // The first `most` that are new, of records in order.
  void add_winners(const Neighbours& neighbours, std::size_t most) {
    for (const auto& [distance, id, record] : neighbours) {
      if (most == 0) {
        return;
      }
      most -= add(record->configuration) ? 1 : 0;
    }
  }

  void add_finalists(const Neighbours& neighbours) {
    for (const auto& [distance, id, record] : neighbours) {
      for (const Digest& trial : record->finalists) {
        if (full()) {
          return;
        }
        if (const auto configuration = configuration_of_(trial)) {
          add(*configuration);
        }
      }
    }
  }

  std::vector<Configuration> take() && { return std::move(found_); }

 private:
  bool full() const { return found_.size() >= kWarmStart; }

  bool add(const Configuration& configuration) {
    auto todays = in_todays_terms(spec_, configuration);
    if (full() || !todays || std::ranges::find(found_, *todays) != found_.end()) {
      return false;
    }
    found_.push_back(*std::move(todays));
    return true;
  }

  const KernelSpec& spec_;
  const TrialConfiguration& configuration_of_;
  std::vector<Configuration> found_;
};

}  // namespace

std::vector<Configuration> warm_start(const Question& question, const IndexSnapshot& index,
                                      const TrialConfiguration& configuration_of) {
  const RecordGroup* group = index.group(question.key);
  if (!group) {
    return {};
  }
  const bool replayed = !question.device.facts.replay_table.empty();
  Neighbours own, others;
  for (const auto& [digest, records] : *group) {
    const DeviceClass* device = index.device(digest);
    if (digest == question.key.device_class) {
      add_neighbours(*records, question.key, own);
    } else if (device && device->facts.replay_table.empty() != replayed) {
      add_neighbours(*records, question.key, others);
    }
  }
  std::ranges::sort(own);
  std::ranges::sort(others);
  WarmStart start(*question.spec, configuration_of);
  start.add_winners(own, kOwnWinners);
  start.add_winners(others, kOtherWinners);
  start.add_finalists(own);
  start.add_finalists(others);
  start.add_winners(own, kWarmStart);
  start.add_winners(others, kWarmStart);
  return std::move(start).take();
}

}  // namespace cubind
