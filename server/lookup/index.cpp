#include "server/lookup/index.hpp"

#include <algorithm>
#include <utility>

#include "server/store/store.hpp"

namespace cubind {
namespace {

std::string group_key(const RecordQuestion& question) {
  // Names of kernels and namespaces hold no line feed: the service refuses control characters.
  return question.kernel + '\n' + question.interface.hex() + '\n' + to_string(question.policy) + '\n' +
         to_string(question.numerics) + '\n' + question.name_space;
}

std::shared_ptr<ClassRecords> with_records(const ClassRecords* old, const std::string& problem,
                                           std::vector<RecordPtr> added) {
  auto records = old ? std::make_shared<ClassRecords>(*old) : std::make_shared<ClassRecords>();
  std::erase_if(records->records,
                [&](const RecordPtr& record) { return to_string(record->question.problem) == problem; });
  records->by_problem.erase(problem);
  if (!added.empty()) {
    records->records.insert(records->records.end(), added.begin(), added.end());
    records->by_problem[problem] = std::move(added);
  }
  return records;
}

}  // namespace

const RecordGroup* IndexSnapshot::group(const RecordQuestion& question) const {
  const auto found = groups_.find(group_key(question));
  return found == groups_.end() ? nullptr : found->second.get();
}

const ClassRecords* IndexSnapshot::records(const RecordQuestion& question) const {
  const RecordGroup* group = this->group(question);
  if (!group) {
    return nullptr;
  }
  const auto found = group->find(question.device_class);
  return found == group->end() ? nullptr : found->second.get();
}

const DeviceClass* IndexSnapshot::device(const Digest& device_class) const {
  const auto found = devices_.find(device_class);
  return found == devices_.end() ? nullptr : &found->second;
}

std::vector<RecordPtr> IndexSnapshot::all() const {
  std::vector<RecordPtr> all;
  for (const auto& [key, group] : groups_) {
    for (const auto& [device, records] : *group) {
      all.insert(all.end(), records->records.begin(), records->records.end());
    }
  }
  std::ranges::sort(all, {}, [](const RecordPtr& record) { return record->id; });
  return all;
}

std::uint32_t IndexSnapshot::record_count() const {
  std::size_t count = 0;
  for (const auto& [key, group] : groups_) {
    for (const auto& [device, records] : *group) {
      count += records->records.size();
    }
  }
  return static_cast<std::uint32_t>(count);
}

std::map<std::string, std::uint32_t> IndexSnapshot::counts_by_kernel() const {
  std::map<std::string, std::uint32_t> counts;
  for (const RecordPtr& record : all()) {
    ++counts[record->question.kernel];
  }
  return counts;
}

std::map<Digest, std::uint32_t> IndexSnapshot::counts_by_device() const {
  std::map<Digest, std::uint32_t> counts;
  for (const RecordPtr& record : all()) {
    ++counts[record->question.device_class];
  }
  return counts;
}

Index::Index() : snapshot_(std::make_shared<IndexSnapshot>()) {}

std::shared_ptr<const IndexSnapshot> Index::snapshot() const {
  const std::lock_guard lock(mutex_);
  return snapshot_;
}

void Index::publish(std::shared_ptr<const IndexSnapshot> snapshot) {
  const std::lock_guard lock(mutex_);
  snapshot_.swap(snapshot);
}

std::shared_ptr<const IndexSnapshot> IndexSnapshot::at(Store& store, std::uint64_t generation) {
  auto snapshot = std::make_shared<IndexSnapshot>();
  store.read([&](StoreReader& reader) {
    snapshot->generation_ = {reader.generation().store_id, generation};
    for (DeviceClass& device : reader.device_classes()) {
      snapshot->devices_.emplace(device.digest, std::move(device));
    }
    snapshot->add(reader.records_at(generation));
  });
  return snapshot;
}

void IndexSnapshot::add(std::vector<RecordRow> rows) {
  std::unordered_map<std::string, std::map<Digest, std::shared_ptr<ClassRecords>>> groups;
  for (RecordRow& row : rows) {
    const auto record = std::make_shared<const RecordRow>(std::move(row));
    auto& records = groups[group_key(record->question)][record->question.device_class];
    if (!records) {
      records = std::make_shared<ClassRecords>();
    }
    records->records.push_back(record);
    records->by_problem[to_string(record->question.problem)].push_back(record);
  }
  for (auto& [key, classes] : groups) {
    groups_[key] = std::make_shared<const RecordGroup>(classes.begin(), classes.end());
  }
}

void Index::load(Store& store) {
  auto next = std::make_shared<IndexSnapshot>();
  store.read([&](StoreReader& reader) {
    next->generation_ = reader.generation();
    for (DeviceClass& device : reader.device_classes()) {
      next->devices_.emplace(device.digest, std::move(device));
    }
    next->add(reader.records({}));
  });
  publish(std::move(next));
}

void Index::refresh(Store& store, const RecordQuestion& question) {
  auto next = std::make_shared<IndexSnapshot>(*snapshot());
  std::vector<RecordPtr> added;
  store.read([&](StoreReader& reader) {
    next->generation_ = reader.generation();
    for (RecordRow& row : reader.records_of(question)) {
      added.push_back(std::make_shared<const RecordRow>(std::move(row)));
    }
    for (DeviceClass& device : reader.device_classes()) {
      next->devices_.emplace(device.digest, std::move(device));
    }
  });
  const std::string key = group_key(question);
  const auto old = next->groups_.find(key);
  auto group = old == next->groups_.end() ? std::make_shared<RecordGroup>()
                                          : std::make_shared<RecordGroup>(*old->second);
  auto& records = (*group)[question.device_class];
  records = with_records(records.get(), to_string(question.problem), std::move(added));
  next->groups_[key] = std::move(group);
  publish(std::move(next));
}

}  // namespace cubind
