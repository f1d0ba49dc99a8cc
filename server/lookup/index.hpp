// The current records in RAM, as snapshots: a reader takes one and uses it as long as it likes, a writer
// publishes the next. No lock is held during lookups or reads from the store.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/store/rows.hpp"

namespace cubind {

class Store;

using RecordPtr = std::shared_ptr<const RecordRow>;

using Dims = std::span<const std::int64_t>;

/// The number of records, and how many of them came with cubind.
struct RecordCount {
  std::uint32_t all = 0, shipped = 0;

  void add(const RecordCount& other);
};

/// The records of one device class within a group.
struct ClassRecords {
  std::vector<RecordPtr> records;     // in store order; a re-read record moves to the end
  std::vector<std::int64_t> dims;     // of all records' problems, in the order of `records`
  std::vector<std::size_t> dim_ends;  // the end of each record's dims
  std::unordered_map<std::string, std::vector<RecordPtr>> by_problem;  // to_string(problem)
  RecordCount count;

  /// The records for whose dims (values in the problem's order) `wanted` returns true. Reads only `dims`.
  std::vector<RecordPtr> select(std::size_t dim_count, const std::function<bool(Dims)>& wanted) const;
  void add(const RecordPtr& record);
  /// Removes the records of this problem and policy; those of another flush method stay.
  void drop(const RecordQuestion& question);

 private:
  void append(const RecordPtr& record);
};

/// The records that may answer one question: same kernel, interface, numerics and namespace, and the same
/// policy except for the flush method.
using RecordGroup = std::map<Digest, std::shared_ptr<const ClassRecords>>;

/// The current records and their device classes at one generation. Immutable once published.
class IndexSnapshot {
 public:
  /// The store's content in an earlier generation.
  static std::shared_ptr<const IndexSnapshot> at(Store& store, std::uint64_t generation);

  const Generation& generation() const { return generation_; }
  /// Null: no records. The question's problem and device class are ignored.
  const RecordGroup* group(const RecordQuestion& question) const;
  const ClassRecords* records(const RecordQuestion& question) const;
  /// Null: the class has no records.
  const DeviceClass* device(const Digest& device_class) const;
  const std::map<Digest, DeviceClass>& devices() const { return devices_; }

  RecordCount record_count() const;
  std::map<std::string, RecordCount> counts_by_kernel() const;
  std::map<Digest, RecordCount> counts_by_device() const;
  /// In no order.
  void each(const std::function<void(const RecordPtr&)>& use) const;
  /// Every record, in the order in which they were stored.
  std::vector<RecordPtr> all() const;

 private:
  friend class Index;
  void each_class(const std::function<void(const Digest&, const ClassRecords&)>& use) const;  // with records
  void add(std::vector<RecordRow> rows);
  /// Replaces the question's records.
  void put(const RecordQuestion& question, std::vector<RecordRow> rows);
  /// Adds the classes that have records; known ones stay unchanged.
  void know(std::map<Digest, DeviceClass> classes);

  Generation generation_;
  std::unordered_map<std::string, std::shared_ptr<const RecordGroup>> groups_;
  std::map<Digest, DeviceClass> devices_;
};

/// Any thread may call snapshot() and published(); one thread at a time (the job thread) may call the others.
class Index {
 public:
  Index();

  std::shared_ptr<const IndexSnapshot> snapshot() const;
  /// The number of snapshots published so far. If read before snapshot(), it is not newer than that snapshot.
  std::uint64_t published() const { return published_; }

  /// Reads everything again: at start, after an import.
  void load(Store& store);
  /// Reads the records of one question again, and the changes of other daemons.
  void refresh(Store& store, const RecordQuestion& question);
  /// Reads the changes of other daemons since the last call of any of these functions. Does nothing if only
  /// one daemon uses the store.
  void catch_up(Store& store);

 private:
  void publish(std::shared_ptr<const IndexSnapshot> snapshot);

  mutable std::mutex mutex_;
  std::shared_ptr<const IndexSnapshot> snapshot_;  // guarded by mutex_
  std::atomic<std::uint64_t> published_{0};        // grows under mutex_
  std::uint64_t change_ = 0;                       // the last change of records that the snapshot contains
};

}  // namespace cubind
