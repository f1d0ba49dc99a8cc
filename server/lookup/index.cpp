#include "server/lookup/index.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "server/store/store.hpp"

namespace cubind {
namespace {

// Records of all flush methods are of one group: those of another one are stale.
std::string group_key(const RecordQuestion& question) {
  // Names of kernels and namespaces hold no line feed: the service refuses control characters.
  return question.kernel + '\n' + question.interface.hex() + '\n' +
         to_string(as_measured_today(question.policy)) + '\n' + to_string(question.numerics) + '\n' +
         question.name_space;
}

}  // namespace

void RecordCount::add(const RecordCount& other) {
  all += other.all;
  shipped += other.shipped;
}

std::vector<RecordPtr> ClassRecords::select(std::size_t dim_count,
                                            const std::function<bool(Dims)>& wanted) const {
  std::vector<RecordPtr> selected;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < records.size(); begin = dim_ends[i++]) {
    const Dims own = Dims(dims).subspan(begin, dim_ends[i] - begin);
    if (own.size() == dim_count && wanted(own)) {
      selected.push_back(records[i]);
    }
  }
  return selected;
}

void ClassRecords::add(const RecordPtr& record) {
  append(record);
  by_problem[to_string(record->question.problem)].push_back(record);
}

void ClassRecords::append(const RecordPtr& record) {
  records.push_back(record);
  for (const NamedValue& dim : record->question.problem.dims) {
    dims.push_back(dim.value);
  }
  dim_ends.push_back(dims.size());
  count.add({1, record->evidence == Evidence::Shipped ? 1U : 0U});
}

void ClassRecords::drop(const RecordQuestion& question) {
  const auto of_problem = by_problem.find(to_string(question.problem));
  if (of_problem == by_problem.end()) {
    return;
  }
  const auto is_gone = [&](const RecordPtr& record) {
    return record->question.problem == question.problem && record->question.policy == question.policy;
  };
  std::erase_if(of_problem->second, is_gone);
  if (of_problem->second.empty()) {
    by_problem.erase(of_problem);
  }
  const std::vector<RecordPtr> before = std::exchange(records, {});
  dims.clear();
  dim_ends.clear();
  count = {};
  for (const RecordPtr& record : before) {
    if (!is_gone(record)) {
      append(record);
    }
  }
}

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

void IndexSnapshot::each_class(const std::function<void(const Digest&, const ClassRecords&)>& use) const {
  for (const auto& [key, group] : groups_) {
    for (const auto& [device, records] : *group) {
      if (!records->records.empty()) {
        use(device, *records);
      }
    }
  }
}

void IndexSnapshot::each(const std::function<void(const RecordPtr&)>& use) const {
  each_class([&](const Digest&, const ClassRecords& of) { std::ranges::for_each(of.records, use); });
}

std::vector<RecordPtr> IndexSnapshot::all() const {
  std::vector<RecordPtr> all;
  each([&](const RecordPtr& record) { all.push_back(record); });
  std::ranges::sort(all, {}, &RecordRow::id);
  return all;
}

RecordCount IndexSnapshot::record_count() const {
  RecordCount count;
  each_class([&](const Digest&, const ClassRecords& of) { count.add(of.count); });
  return count;
}

std::map<std::string, RecordCount> IndexSnapshot::counts_by_kernel() const {
  std::map<std::string, RecordCount> counts;
  each_class([&](const Digest&, const ClassRecords& of) {
    counts[of.records.front()->question.kernel].add(of.count);
  });
  return counts;
}

std::map<Digest, RecordCount> IndexSnapshot::counts_by_device() const {
  std::map<Digest, RecordCount> counts;
  each_class([&](const Digest& device, const ClassRecords& of) { counts[device].add(of.count); });
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
  ++published_;
}

std::shared_ptr<const IndexSnapshot> IndexSnapshot::at(Store& store, std::uint64_t generation) {
  auto snapshot = std::make_shared<IndexSnapshot>();
  store.read([&](StoreReader& reader) {
    snapshot->generation_ = {reader.generation().store_id, generation};
    snapshot->add(reader.records_at(generation));
    snapshot->know(reader.device_classes());
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
    records->add(record);
  }
  for (auto& [key, classes] : groups) {
    groups_[key] = std::make_shared<const RecordGroup>(classes.begin(), classes.end());
  }
}

void Index::load(Store& store) {
  auto next = std::make_shared<IndexSnapshot>();
  store.read([&](StoreReader& reader) {
    next->generation_ = reader.generation();
    next->add(reader.records({}));
    next->know(reader.device_classes());
    change_ = reader.last_record_change();
  });
  publish(std::move(next));
}

void IndexSnapshot::put(const RecordQuestion& question, std::vector<RecordRow> rows) {
  const std::string key = group_key(question);
  const auto old = groups_.find(key);
  auto group =
      old == groups_.end() ? std::make_shared<RecordGroup>() : std::make_shared<RecordGroup>(*old->second);
  auto& known = (*group)[question.device_class];
  const auto records = known ? std::make_shared<ClassRecords>(*known) : std::make_shared<ClassRecords>();
  records->drop(question);
  for (RecordRow& row : rows) {
    records->add(std::make_shared<const RecordRow>(std::move(row)));
  }
  known = records;
  groups_[key] = std::move(group);
}

void IndexSnapshot::know(std::map<Digest, DeviceClass> classes) {
  std::set<Digest> with_records;
  each_class([&](const Digest& device, const ClassRecords&) { with_records.insert(device); });
  classes.merge(devices_);
  std::erase_if(classes, [&](const auto& one) { return !with_records.contains(one.first); });
  devices_ = std::move(classes);
}

void Index::refresh(Store& store, const RecordQuestion& question) {
  if (store.peers() != nullptr) {
    catch_up(store);  // a generation is that of all records
    return;
  }
  auto next = std::make_shared<IndexSnapshot>(*snapshot());
  store.read([&](StoreReader& reader) {
    next->generation_ = reader.generation();
    next->put(question, reader.records_of(question));
    next->know(reader.device_classes());
  });
  publish(std::move(next));
}

void Index::catch_up(Store& store) {
  constexpr std::size_t kMostQuestions = 64;  // else all is read again: each costs a copy of its group
  auto next = std::make_shared<IndexSnapshot>(*snapshot());
  std::map<Digest, RecordQuestion> changed;  // by record key
  bool is_other_store = false;
  std::uint64_t last = 0;
  store.read([&](StoreReader& reader) {
    for (const RecordRow& row : reader.records_since(change_)) {
      changed.emplace(row.key, row.question);
    }
    is_other_store = reader.generation().store_id != next->generation_.store_id;
    if (changed.empty() || changed.size() > kMostQuestions || is_other_store) {
      return;
    }
    next->generation_ = reader.generation();
    last = reader.last_record_change();
    for (const auto& [key, question] : changed) {
      next->put(question, reader.records_of(question));
    }
    next->know(reader.device_classes());
  });
  if (is_other_store || changed.size() > kMostQuestions) {
    load(store);
  } else if (!changed.empty()) {
    change_ = last;
    publish(std::move(next));
  }
}

}  // namespace cubind
