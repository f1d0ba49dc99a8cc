// Faults that the store remembers, and what forgetting one leaves.
#include <catch2/catch.hpp>

#include "tests/support/facts.hpp"
#include "tests/unit/server/store_fixture.hpp"

namespace cubind::test {
namespace {

TrialRow failed_row(const std::string& name, Outcome outcome, std::int64_t threads = 256,
                    std::int64_t n = 4096) {
  TrialRow row = trial_row(name, n);
  row.outcome = outcome;
  row.header().set_fault_count(2);
  row.configuration.values[0].value = threads;
  return row;
}

struct FaultStore : RecordStore {
  FaultStore() {
    write([&](StoreWriter& writer) {
      for (const TrialRow& row : {correct, too_slow, crashed, slow_compile, elsewhere}) {
        writer.put_trial(row);
        writer.put_block(block_row(row, 0));
      }
    });
  }

  FaultFilter filter() const { return {.device_class = h200_class().digest}; }
  std::vector<Key> found(const FaultFilter& filter) {
    std::vector<Key> keys;
    for (const TrialRow& row : read([&](StoreReader& reader) { return reader.faults(filter); })) {
      keys.push_back(row.key);
    }
    return keys;
  }

  TrialRow correct = trial_row("correct");
  TrialRow too_slow = failed_row("unverified", Outcome::Unverified);
  TrialRow crashed = failed_row("crashed", Outcome::Runtime, 1024);
  TrialRow slow_compile = failed_row("compile", Outcome::Compile, 512, 8192);
  TrialRow elsewhere = [] {
    TrialRow row = failed_row("elsewhere", Outcome::Timeout);
    row.device_class = Digest::of("another class");
    return row;
  }();
};

TEST_CASE_METHOD(FaultStore, "faults are those of one device class, by kernel and problem and tunables") {
  CHECK(found(filter()) == std::vector{crashed.key, slow_compile.key});
  FaultFilter asked = filter();
  asked.kernel = "another_kernel";
  CHECK(found(asked).empty());
  asked.kernel = "vector_add";
  asked.problems = {problem_of(8192)};
  CHECK(found(asked) == std::vector{slow_compile.key});
  asked.problems.clear();
  asked.values = {{"THREADS", 1024}};
  CHECK(found(asked) == std::vector{crashed.key});
  asked.values.push_back({"VECTOR", 8});
  CHECK(found(asked).empty());
}

TEST_CASE_METHOD(FaultStore, "an imported fault is nothing that this store remembers") {
  TrialRow imported = failed_row("imported", Outcome::Runtime);
  imported.origin = Origin::Import;
  imported.key.full.clear();
  write([&](StoreWriter& writer) { writer.put_trial(imported); });
  CHECK(found(filter()).size() == 2);
}

TEST_CASE_METHOD(FaultStore, "a forgotten trial leaves nothing and the others stay") {
  VerificationRow verified;
  *verified.mutable_verification() = comparison_of(problem_of(4096));
  verified.mutable_verification()->set_trial_key(bytes_of(crashed.key.digest));
  verified.mutable_verification()->set_verification_digest(bytes_of(Digest::of("reference and tolerance")));
  write([&](StoreWriter& writer) {
    writer.put_verification(verified);
    writer.forget_trial(crashed);
  });
  CHECK(found(filter()) == std::vector{slow_compile.key});
  CHECK_FALSE(read([&](StoreReader& reader) { return reader.trial(crashed.key.digest, crashed.kernel); }));
  CHECK(read([&](StoreReader& reader) { return reader.blocks(correct); }).size() == 1);
  write([&](StoreWriter& writer) { writer.put_trial(crashed); });
  CHECK(read([&](StoreReader& reader) { return reader.blocks(crashed); }).empty());
  CHECK(read([&](StoreReader& reader) { return reader.verifications(crashed); }).empty());
}

TEST_CASE_METHOD(FaultStore, "the search of a problem whose fault is forgotten is no longer done") {
  const auto searched = [&](std::int64_t n) {
    RecordRow row = record_row(n);
    row.search = search_of(Digest::of("space"), "exhaustive", 5, 0, true);
    return row;
  };
  put(searched(4096));
  put(searched(8192));
  const auto before = generation();
  write([&](StoreWriter& writer) { writer.forget_trial(crashed); });
  for (const RecordRow& record : records()) {
    CHECK(record.search.complete() == (record.question.problem == problem_of(8192)));
    CHECK(record.timing.median_us() == 20.0);
  }
  CHECK(records().size() == 2);
  CHECK(generation() == before);
}

}  // namespace
}  // namespace cubind::test
