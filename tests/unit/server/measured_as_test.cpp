// Trials whose agent says that they run the code of another one: the daemon compares what it has stored of
// both.
#include <catch2/catch.hpp>

#include "base/zstd.hpp"
#include "tests/support/facts.hpp"
#include "tests/support/named_cubin.hpp"
#include "tests/unit/server/scheduler_fixture.hpp"

namespace cubind::test {
namespace {

Configuration of(std::int64_t threads, std::int64_t vector, std::int64_t unroll) {
  return {{{"THREADS", threads}, {"VECTOR", vector}, {"UNROLL", unroll}}};
}

struct Reported : SchedulerFixture {
  Reported() {
    options.lease = std::chrono::minutes(10);
    scheduler = make();
    agent = scheduler->agent_joined(agent_with(), link);
    submit();
  }

  /// A trial with a block and a verification, or without where it is said to be measured as that one.
  WorkBatch tried(const Configuration& configuration, const std::string& code,
                  const std::optional<Digest>& measured_as = {}) {
    const std::string symbol = "_Z" + to_string(configuration);
    const std::string cubin = named_cubin(symbol, code);
    WorkBatch result = batch("a");
    TrialRow& row = result.trials[0];
    row = trial_of(configuration, "a");
    row.measured_as = measured_as;
    const ArtifactSource source = artifact_source(spec(), row.problem, configuration, "sm_90");
    ArtifactRow& artifact = result.artifacts[0].row;
    artifact.key = artifact_key(source, row.toolchain);
    artifact.entries = source.entries;
    artifact.entry_symbols = {symbol};
    artifact.resources = {resources_of(symbol, 32)};
    artifact.cubin = Digest::of(cubin);
    artifact.cubin_bytes = cubin.size();
    result.artifacts[0].zstd = zstd_compress(cubin);
    result.blocks[0].mutable_block()->set_trial_key(bytes_of(row.key.digest));
    result.verifications[0].mutable_verification()->set_trial_key(bytes_of(row.key.digest));
    if (measured_as) {
      result.blocks.clear();
      result.verifications.clear();
    }
    return result;
  }
  bool store_batch(const WorkBatch& batch) {
    return scheduler->store_batch(agent, link.leases.back().id, link.leases.back().fence, batch);
  }
  Digest key(const Configuration& configuration) { return trial_of(configuration, "a").key.digest; }
  /// Why it ends the lease.
  std::string refusal_of(const WorkBatch& batch) {
    CHECK_FALSE(store_batch(batch));
    return link.why_ended.empty() ? "" : link.why_ended.back();
  }

  // Launched alike: 256 threads of four elements.
  const Configuration measured = of(256, 4, 1), twin = of(256, 2, 2), elsewhere = of(512, 4, 1);
  std::uint64_t agent = 0;
};

TEST_CASE_METHOD(Reported, "a trial has the results of the one that was measured for it") {
  REQUIRE(store_batch(tried(measured, "code")));
  REQUIRE(store_batch(tried(twin, "code", key(measured))));
  store->read([&](StoreReader& reader) {
    const TrialRow row = reader.trial(key(twin), "vector_add").value();
    CHECK(row.measured_as == key(measured));
    CHECK(reader.blocks(row).size() == 1);
    CHECK(reader.verifications(row).size() == 1);
    const TrialGroup group{row.kernel, row.source, row.problem, row.device_class, row.policy, "580"};
    CHECK(reader.blocks_of(group, 0).size() == 1);  // a lease brings them once
  });
  REQUIRE(store_batch(tried(twin, "code")));
  store->read(
      [&](StoreReader& reader) { CHECK_FALSE(reader.trial(key(twin), "vector_add").value().measured_as); });
}

TEST_CASE_METHOD(Reported, "a trial that was not measured is not measured as one that it differs from") {
  REQUIRE(store_batch(tried(measured, "code")));
  const bool is_other_code = GENERATE(true, false);
  const WorkBatch reported =
      is_other_code ? tried(twin, "other", key(measured)) : tried(elsewhere, "code", key(measured));
  CHECK_THAT(refusal_of(reported), Catch::Contains("batch.trials[0].measured_as: ") &&
                                       Catch::Contains("runs other code, or by other launches"));
  store->read(
      [&](StoreReader& reader) { CHECK_FALSE(reader.trial(reported.trials[0].key.digest, "vector_add")); });
}

TEST_CASE_METHOD(Reported, "a trial is not measured as one that is unknown") {
  CHECK_THAT(refusal_of(tried(twin, "code", key(measured))), Catch::Contains("is no trial of this job"));
}

TEST_CASE_METHOD(Reported, "a trial is not measured as itself") {
  CHECK_THAT(refusal_of(tried(twin, "code", key(twin))), Catch::Contains("was not measured itself"));
}

TEST_CASE_METHOD(Reported, "a trial that ran out of memory is measured as none and none as it") {
  REQUIRE(store_batch(tried(measured, "code")));
  WorkBatch both = tried(elsewhere, "code");
  const WorkBatch second = tried(twin, "code", GENERATE_COPY(key(measured), key(elsewhere)));
  both.trials.push_back(second.trials[0]);
  both.artifacts.push_back(second.artifacts[0]);
  for (TrialRow& trial : both.trials) {
    trial.outcome = Outcome::OutOfMemory;
  }
  CHECK_THAT(refusal_of(both),
             Catch::Contains("batch.trials[1].measured_as: ") && Catch::Contains("ran out of memory"));
}

TEST_CASE_METHOD(Reported, "a trial that was measured as another one is no winner") {
  REQUIRE(store_batch(tried(measured, "code")));
  REQUIRE(store_batch(tried(twin, "code", key(measured))));
  WorkResult result = done("a");
  result.record.trial = key(twin);
  result.record.finalists = {result.record.trial};
  CHECK_FALSE(scheduler->finish(agent, link.leases.back().id, link.leases.back().fence, result));
  REQUIRE(!link.why_ended.empty());
  CHECK_THAT(link.why_ended.back(),
             Catch::Contains("result.winner_trial") && Catch::Contains("was not measured itself"));
}

}  // namespace
}  // namespace cubind::test
