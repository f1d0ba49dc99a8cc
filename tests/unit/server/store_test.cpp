// What the store keeps of artifacts, trials and measurements.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "server/answer/blob_cache.hpp"
#include "server/table/table_export.hpp"
#include "tests/unit/server/store_fixture.hpp"

namespace cubind::test {
namespace {

TEST_CASE("an artifact and its bytes read back as they were written") {
  StoreFixture f;
  const ArtifactRow row = artifact_row("a", "cubin");
  f.write([&](StoreWriter& writer) {
    writer.put_blob(blob_of("cubin"));
    writer.put_artifact(row);
  });
  f.reopen();
  CHECK(f.read([&](StoreReader& reader) { return reader.artifact(row.key); }) == row);
  CHECK(f.read([&](StoreReader& reader) { return reader.blob(row.cubin); })->zstd == blob_of("cubin").zstd);
  CHECK(f.read([&](StoreReader& reader) { return reader.toolchains("vector_add"); }).size() == 1);
}

TEST_CASE("a stored cubin whose bytes have changed is DATA_LOSS and is never served") {
  StoreFixture f;
  f.write([&](StoreWriter& writer) { writer.put_blob(blob_of("cubin")); });
  f.damage("UPDATE blobs SET zstd = cubin");
  CHECK(code_of([&] { f.read([](StoreReader& reader) { return reader.blob(Digest::of("cubin")); }); }) ==
        ErrorCode::DataLoss);
}

TEST_CASE("a key whose full form differs from the stored one is DATA_LOSS") {
  StoreFixture f;
  const ArtifactRow row = artifact_row("a", "cubin");
  f.write([&](StoreWriter& writer) { writer.put_artifact(row); });
  const Key collision{row.key.digest, "another full key with the same digest"};
  CHECK(code_of([&] { f.read([&](StoreReader& reader) { return reader.artifact(collision); }); }) ==
        ErrorCode::DataLoss);
}

TEST_CASE("bytes that do not have the digest are refused") {
  StoreFixture f;
  Blob blob = blob_of("cubin");
  blob.cubin = Digest::of("another");
  CHECK(code_of([&] { f.write([&](StoreWriter& writer) { writer.put_blob(blob); }); }) ==
        ErrorCode::InvalidArgument);
}

TEST_CASE("a trial never goes back to an older series") {
  StoreFixture f;
  TrialRow trial = trial_row("a");
  f.write([&](StoreWriter& writer) {
    for (const std::uint32_t series : {0, 2, 1}) {
      trial.series = series;
      writer.put_trial(trial);
    }
  });
  CHECK(f.read([&](StoreReader& reader) { return reader.trial(trial.key.digest, trial.kernel); })->series ==
        2);
}

TEST_CASE("a block is stored once") {
  StoreFixture f;
  const TrialRow trial = trial_row("a");
  bool first = false, second = true;
  f.write([&](StoreWriter& writer) {
    writer.put_trial(trial);
    first = writer.put_block(block_row(trial, 0));
    second = writer.put_block(block_row(trial, 0));
  });
  CHECK(first);
  CHECK_FALSE(second);
  CHECK(f.read([&](StoreReader& reader) { return reader.blocks(trial); }) ==
        std::vector{block_row(trial, 0)});
}

TEST_CASE("every block keeps clocks and temperature and power and throttle reasons and tick") {
  StoreFixture f;
  const TrialRow trial = trial_row("a");
  BlockRow block = block_row(trial, 0);
  Conditions& conditions = *block.mutable_block()->mutable_conditions();
  conditions.set_memory_mhz(3201);
  conditions.set_temperature_c(61);
  conditions.set_power_mw(689'000);
  conditions.set_throttle_reasons(0x44);
  conditions.set_throttled(true);
  f.write([&](StoreWriter& writer) {
    writer.put_trial(trial);
    writer.put_block(block);
  });
  CHECK(f.read([&](StoreReader& reader) { return reader.blocks(trial); }) == std::vector{block});
}

TEST_CASE(
    "a verification keeps its worst excess with place and count and whether two runs gave the same bits") {
  StoreFixture f;
  VerificationRow row;
  *row.mutable_verification() = comparison_of(problem_of(4097));
  row.mutable_verification()->set_trial_key(bytes_of(trial_row("a").key.digest));
  row.mutable_verification()->set_verification_digest(bytes_of(Digest::of("reference and tolerance")));
  row.mutable_verification()->set_after_timing(true);
  row.mutable_verification()->set_outcome(v1::WRONG_RESULT);
  row.mutable_verification()->set_worst_excess(17.5);
  row.mutable_verification()->set_worst_output("y");
  row.mutable_verification()->set_worst_index(4096);
  row.mutable_verification()->set_mismatches(3);
  row.mutable_verification()->set_same_bits(true);
  f.write([&](StoreWriter& writer) {
    writer.put_trial(trial_row("a"));
    writer.put_verification(row);
  });
  CHECK(f.read([](StoreReader& reader) { return reader.verifications(trial_row("a")); }) == std::vector{row});
}

TEST_CASE("blocks and verifications of all trials of a question come in one query and of one series alone") {
  StoreFixture f;
  TrialRow earlier = trial_row("c");
  const TrialRow a = trial_row("a"), b = trial_row("b");
  earlier.series = 1;
  VerificationRow verified;
  *verified.mutable_verification() = comparison_of(problem_of(4096));
  verified.mutable_verification()->set_trial_key(bytes_of(b.key.digest));
  verified.mutable_verification()->set_verification_digest(bytes_of(Digest::of("reference and tolerance")));
  f.write([&](StoreWriter& writer) {
    for (const TrialRow& trial : {a, b, trial_row("elsewhere", 8192), earlier}) {
      writer.put_trial(trial);
      writer.put_block(block_row(trial, 0));
    }
    writer.put_block(block_row(b, 1));
    writer.put_verification(verified);
  });
  const TrialGroup group{a.kernel, {}, a.problem, a.device_class, a.policy, "580"};
  std::vector<BlockRow> expected = {block_row(a, 0), block_row(b, 0), block_row(b, 1)};
  std::ranges::stable_sort(expected, {}, [](const BlockRow& row) { return trial_of(row); });
  CHECK(f.read([&](StoreReader& reader) { return reader.blocks_of(group, 0); }) == expected);
  CHECK(f.read([&](StoreReader& reader) { return reader.verifications_of(group, 0); }) ==
        std::vector{verified});
  CHECK(f.read([&](StoreReader& reader) { return reader.blocks_of(group, 1); }) ==
        std::vector{block_row(earlier, 0)});
}

/// The trial as a kernel of another name has it, of the same source.
TrialRow under_another_name(TrialRow trial) {
  trial.kernel = "vector_add_copy";
  trial.configuration = {{{"CONFIG", 7}}};
  return trial;
}

TEST_CASE("kernels of one source share samples and verifications and each has its own outcome of a trial") {
  StoreFixture f;
  TrialRow mine = trial_row("a");
  mine.source = Digest::of("source");
  TrialRow theirs = under_another_name(mine);
  theirs.outcome = Outcome::WrongResult;
  theirs.header().set_detail("of the other one");
  VerificationRow verified;
  *verified.mutable_verification() = comparison_of(problem_of(4096));
  verified.mutable_verification()->set_trial_key(bytes_of(mine.key.digest));
  verified.mutable_verification()->set_verification_digest(bytes_of(Digest::of("reference and tolerance")));
  f.write([&](StoreWriter& writer) {
    writer.put_trial(mine);
    writer.put_block(block_row(mine, 0));
    writer.put_verification(verified);
    writer.put_trial(theirs);
  });
  CHECK(f.read([&](StoreReader& reader) { return reader.trial(mine.key.digest, mine.kernel); }) == mine);
  CHECK(f.read([&](StoreReader& reader) { return reader.trial(mine.key.digest, theirs.kernel); }) == theirs);
  const TrialGroup third{"no_trial_yet", mine.source, mine.problem, mine.device_class, mine.policy, "580"};
  CHECK(f.read([&](StoreReader& reader) { return reader.trials(third); }).empty());
  CHECK(f.read([&](StoreReader& reader) { return reader.blocks_of(third, 0); }) ==
        std::vector{block_row(mine, 0)});
  CHECK(f.read([&](StoreReader& reader) { return reader.verifications_of(third, 0); }) ==
        std::vector{verified});
  ExportOptions everything;
  everything.all_trials = true;
  f.write([](StoreWriter& writer) { writer.put_device_class(h200_class()); });
  CHECK(f.read([&](StoreReader& reader) { return export_table(reader, everything); }).table.trials.size() ==
        2);
}

TEST_CASE("a kernel of another source at the same problem shares nothing") {
  StoreFixture f;
  TrialRow mine = trial_row("a");
  mine.source = Digest::of("source");
  f.write([&](StoreWriter& writer) {
    writer.put_trial(mine);
    writer.put_block(block_row(mine, 0));
  });
  const TrialGroup other{"other", Digest::of("another source"), mine.problem, mine.device_class, {}, "580"};
  CHECK(f.read([&](StoreReader& reader) { return reader.blocks_of(other, 0); }).empty());
  CHECK(f.read([&](StoreReader& reader) { return reader.last_series(question_of(4096), other.source); }) ==
        0);
}

TEST_CASE("a retune of one kernel begins a series for all kernels of its source") {
  StoreFixture f;
  TrialRow theirs = under_another_name(trial_row("a"));
  theirs.source = Digest::of("source");
  theirs.series = 2;
  f.write([&](StoreWriter& writer) { writer.put_trial(theirs); });
  const auto last = [&](const Digest& source) {
    return f.read([&](StoreReader& reader) { return reader.last_series(question_of(4096), source); });
  };
  CHECK(last(theirs.source) == 2);
  CHECK(last({}) == 0);
}

TEST_CASE("a verification that has failed stays failed in its series, whatever later runs say") {
  StoreFixture f;
  VerificationRow row;
  *row.mutable_verification() = comparison_of(problem_of(4096));
  row.mutable_verification()->set_trial_key(bytes_of(trial_row("a").key.digest));
  row.mutable_verification()->set_verification_digest(bytes_of(Digest::of("reference and tolerance")));
  row.mutable_verification()->set_outcome(v1::WRONG_RESULT);
  VerificationRow passed = row;
  passed.mutable_verification()->set_outcome(v1::CORRECT);
  f.write([&](StoreWriter& writer) {
    writer.put_trial(trial_row("a"));
    writer.put_verification(row);
    writer.put_verification(passed);
  });
  CHECK(f.read([](StoreReader& reader) { return reader.verifications(trial_row("a")); }) == std::vector{row});
}

TEST_CASE(
    "a trial that one kernel forgets keeps what another kernel has of it, but for failed verifications") {
  StoreFixture f;
  const TrialRow mine = trial_row("a"), theirs = under_another_name(mine);
  VerificationRow passed;
  *passed.mutable_verification() = comparison_of(problem_of(4096));
  passed.mutable_verification()->set_trial_key(bytes_of(mine.key.digest));
  passed.mutable_verification()->set_verification_digest(bytes_of(Digest::of("their reference")));
  VerificationRow failed = passed;
  failed.mutable_verification()->set_verification_digest(bytes_of(Digest::of("my reference")));
  failed.mutable_verification()->set_outcome(v1::WRONG_RESULT);
  f.write([&](StoreWriter& writer) {
    writer.put_trial(mine);
    writer.put_trial(theirs);
    writer.put_block(block_row(mine, 0));
    writer.put_verification(passed);
    writer.put_verification(failed);
    writer.forget_trial(mine);
  });
  CHECK_FALSE(f.read([&](StoreReader& reader) { return reader.trial(mine.key.digest, mine.kernel); }));
  CHECK(f.read([&](StoreReader& reader) { return reader.blocks(theirs); }).size() == 1);
  CHECK(f.read([&](StoreReader& reader) { return reader.verifications(theirs); }) == std::vector{passed});
  f.write([&](StoreWriter& writer) { writer.forget_trial(theirs); });
  CHECK(f.read([&](StoreReader& reader) { return reader.blocks(theirs); }).empty());
  CHECK(f.read([&](StoreReader& reader) { return reader.verifications(theirs); }).empty());
}

TEST_CASE("artifacts that several questions name come once and those that did not compile as keys alone") {
  StoreFixture f;
  const ArtifactRow shared = artifact_row("shared", "cubin");
  const Digest failed = Digest::of("does not compile");
  TrialRow one = trial_row("a"), other = trial_row("b", 8192), broken = trial_row("c", 8192);
  one.artifact_key = other.artifact_key = shared.key.digest;
  broken.artifact_key = failed;
  f.write([&](StoreWriter& writer) {
    writer.put_blob(blob_of("cubin"));
    writer.put_artifact(shared);
    for (const TrialRow& trial : {one, other, broken}) {
      writer.put_trial(trial);
    }
  });
  const std::vector<TrialGroup> groups = {
      {"vector_add", {}, problem_of(4096), h200_class().digest, {}, "580"},
      {"vector_add", {}, problem_of(8192), h200_class().digest, {}, "580"}};
  CHECK(f.read([&](StoreReader& reader) { return reader.artifacts_of(groups); }) == std::vector{shared});
  CHECK(f.read([&](StoreReader& reader) { return reader.artifact_keys_of(groups); }) ==
        std::set{shared.key.digest, failed});
}

TEST_CASE("the fastest that were screened come first and no more than asked for") {
  StoreFixture f;
  const auto screened = [&](StoreWriter& writer, const std::string& name, std::int64_t threads, double us) {
    TrialRow trial = trial_row(name);
    trial.configuration = {{{"THREADS", threads}, {"VECTOR", 4}}};
    writer.put_trial(trial);
    for (unsigned index = 0; index < 2; ++index) {
      BlockRow block = block_row(trial, index);
      block.mutable_block()->set_stage(v1::SampleBlock::SCREEN);
      block.mutable_block()->clear_samples_us();
      block.mutable_block()->add_samples_us(us + index);
      writer.put_block(block);
    }
  };
  f.write([&](StoreWriter& writer) {
    screened(writer, "a", 64, 30);
    screened(writer, "b", 128, 10);
    screened(writer, "c", 256, 20);
    writer.put_trial(trial_row("never screened"));
  });
  const TrialGroup group{"vector_add", {}, problem_of(4096), h200_class().digest, {}, "580"};
  CHECK(f.read([&](StoreReader& reader) { return reader.fastest_screened(group, 0, 2); }) ==
        std::vector<Configuration>{{{{"THREADS", 128}, {"VECTOR", 4}}}, {{{"THREADS", 256}, {"VECTOR", 4}}}});
  CHECK(f.read([&](StoreReader& reader) { return reader.fastest_screened(group, 0, 9); }).size() == 3);
  f.damage("UPDATE trials SET fact = key WHERE key IN (SELECT trial FROM blocks ORDER BY trial LIMIT 1)");
  CHECK(f.read([&](StoreReader& reader) { return reader.fastest_screened(group, 0, 9); }).size() == 2);
}

TEST_CASE("a block without its trial is refused and the whole batch with it") {
  StoreFixture f;
  const TrialRow trial = trial_row("a");
  CHECK(code_of([&] {
          f.write([&](StoreWriter& writer) {
            writer.put_trial(trial_row("b"));
            writer.put_block(block_row(trial, 0));
          });
        }) == ErrorCode::InvalidArgument);
  CHECK(f.read([](StoreReader& reader) { return reader.counts(); }).trials == 0);
}

TEST_CASE("trials come back by question and a new driver branch begins without their faults") {
  StoreFixture f;
  TrialRow trial = trial_row("a");
  trial.outcome = Outcome::Runtime;
  trial.header().set_fault_count(1);
  f.write([&](StoreWriter& writer) {
    writer.put_trial(trial);
    trial.header().set_fault_count(2);
    writer.put_trial(trial);
  });
  TrialGroup group{"vector_add", {}, problem_of(4096), h200_class().digest, {}, "580"};
  const auto known = f.read([&](StoreReader& reader) { return reader.trials(group); });
  REQUIRE(known.size() == 1);
  CHECK(known[0].header().fault_count() == 2);
  group.driver_branch = "590";
  CHECK(f.read([&](StoreReader& reader) { return reader.trials(group); }).empty());
}

TEST_CASE("a count of faults never shrinks while they last") {
  StoreFixture f;
  TrialRow trial = trial_row("a");
  const auto put = [&](Outcome outcome, std::uint32_t faults) {
    trial.outcome = outcome;
    trial.header().set_fault_count(faults);
    f.write([&](StoreWriter& writer) { writer.put_trial(trial); });
    return f.read([&](StoreReader& reader) { return reader.trial(trial.key.digest, trial.kernel); })
        .value()
        .header()
        .fault_count();
  };
  CHECK(put(Outcome::Runtime, 2) == 2);
  CHECK(put(Outcome::Timeout, 1) == 2);
  CHECK(put(Outcome::Correct, 0) == 0);
}

TEST_CASE("out of memory is not stored") {
  StoreFixture f;
  TrialRow trial = trial_row("a");
  trial.outcome = Outcome::OutOfMemory;
  bool stored = true;
  f.write([&](StoreWriter& writer) { stored = writer.put_trial(trial); });
  CHECK_FALSE(stored);
  CHECK(f.read([](StoreReader& reader) { return reader.counts(); }).trials == 0);
}

TEST_CASE("an imported trial is kept with a measured one and neither replaces the other") {
  StoreFixture f;
  TrialRow imported = trial_row("a");
  imported.origin = Origin::Import;
  imported.key.full.clear();
  f.write([&](StoreWriter& writer) {
    writer.put_trial(imported);
    writer.put_trial(trial_row("a"));
  });
  CHECK(f.read([](StoreReader& reader) { return reader.all_trials({}); }).size() == 2);
  const TrialGroup group{"vector_add", {}, problem_of(4096), h200_class().digest, {}, "580"};
  CHECK(f.read([&](StoreReader& reader) { return reader.trials(group); }).size() == 1);
}

TEST_CASE("damaged bytes of a cubin are replaced by those that are put again") {
  StoreFixture f;
  const auto put = [](StoreWriter& writer) { writer.put_blob(blob_of("cubin")); };
  f.write(put);
  f.damage("UPDATE blobs SET zstd = cubin");
  f.write(put);
  CHECK(f.read([](StoreReader& reader) { return reader.blob(Digest::of("cubin")); })->zstd ==
        blob_of("cubin").zstd);
}

TEST_CASE("the stored size of a cubin is that of its bytes") {
  StoreFixture f;
  const auto put = [](StoreWriter& writer) {
    Blob blob = blob_of("cubin");
    blob.cubin_bytes += 100;
    writer.put_blob(blob);
  };
  const auto size = [&] {
    return f.read([](StoreReader& reader) { return reader.blob(Digest::of("cubin")); })->cubin_bytes;
  };
  f.write(put);
  CHECK(size() == 5);
  f.damage("UPDATE blobs SET cubin_bytes = 6");
  BlobCache cache(*f.store, 1 << 20);
  CHECK(cache.find(Digest::of("cubin")) == nullptr);
  f.write(put);
  CHECK(size() == 5);
}

TEST_CASE("a damaged cubin found by the cache is no longer stored") {
  StoreFixture f;
  f.write([](StoreWriter& writer) { writer.put_blob(blob_of("cubin")); });
  f.damage("UPDATE blobs SET zstd = cubin");
  BlobCache cache(*f.store, 1 << 20);
  CHECK(cache.find(Digest::of("cubin")) == nullptr);
  CHECK_FALSE(f.read([](StoreReader& reader) { return reader.has_blob(Digest::of("cubin")); }));
}

}  // namespace
}  // namespace cubind::test
