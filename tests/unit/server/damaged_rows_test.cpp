// One damaged value in the store: its row is left out, and nothing else is.
#include <catch2/catch.hpp>

#include "server/lookup/index.hpp"
#include "server/store/sqlite/database.hpp"
#include "server/table/table_export.hpp"
#include "tests/support/full_disk.hpp"
#include "tests/unit/server/scheduler_fixture.hpp"
#include "tests/unit/server/store_fixture.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

struct TwoRecords : RecordStore {
  TwoRecords() {
    put(record_row(1));
    put(record_row(2));
  }
  void damage_first(const std::string& assignment) {
    damage("UPDATE records SET " + assignment + " WHERE id = 1");
  }
  std::int64_t rows() {
    RecordFilter all;
    all.current_only = false;
    return static_cast<std::int64_t>(read([&](StoreReader& reader) { return reader.records(all); }).size());
  }
};

TEST_CASE("a record with a damaged value is left out and the others are reported") {
  const std::string value =
      GENERATE("fact = x'00'", "fact = x''", "fact = CAST(fact || x'00' AS BLOB)",
               "fact = CAST(substr(fact, 1, length(fact) - 1) AS BLOB)",
               "fact = (SELECT fact FROM records WHERE id = 2)", "problem = replace(problem, '1', '3')",
               "kernel = 'vector_bdd'", "key = zeroblob(32)", "policy = 'cold/1,stream'",
               "evidence = 'replayed'", "driver_branch = '590'", "toolchain_major = 12",
               "cubin = zeroblob(32)", "trial = zeroblob(32)", "provisional = 1", "from_generation = 0",
               "kernel = CAST(x'e375707469' AS TEXT)", "fact_sha256 = zeroblob(32)");
  CAPTURE(value);
  TwoRecords f;
  f.damage_first(value);
  REQUIRE(f.records().size() == 1);
  CHECK(f.records()[0].question.problem == problem_of(2));
  CHECK(f.store->damaged_rows() == 1);
}

TEST_CASE("a record that has been replaced is not damaged") {
  TwoRecords f;
  f.put(record_row(1, 30));
  CHECK(f.rows() == 3);
  CHECK(f.store->damaged_rows() == 0);
}

TEST_CASE("a record with a damaged value answers neither its question nor a pinned generation") {
  TwoRecords f;
  f.damage_first("fact = x'00'");
  Index index;
  index.load(*f.store);
  CHECK(index.snapshot()->record_count().all == 1);
  index.refresh(*f.store, question_of(1));
  CHECK(index.snapshot()->record_count().all == 1);
  CHECK(IndexSnapshot::at(*f.store, 2)->record_count().all == 1);
}

TEST_CASE(
    "the next record of a damaged one's question takes its place and the damaged row stays in the file") {
  TwoRecords f;
  f.damage_first("fact = x'00'");
  CHECK(f.put(record_row(1, 30)));
  CHECK(f.records().size() == 2);
  CHECK(f.count_rows("records") == 3);
}

TEST_CASE("a provisional record takes the place of a damaged one") {
  TwoRecords f;
  f.damage_first("fact = x'7b'");
  RecordRow provisional = record_row(1);
  provisional.provisional = true;
  CHECK(f.put(provisional));
}

TEST_CASE("a device class with a damaged value is left out until it is put again") {
  const std::string value =
      GENERATE("fact = x'7b'", "fact = CAST(replace(CAST(fact AS TEXT), 'h200', 'h201') AS BLOB)",
               "fact_sha256 = digest");
  CAPTURE(value);
  RecordStore f;
  const auto classes = [&] { return f.read([](StoreReader& reader) { return reader.device_classes(); }); };
  f.damage("UPDATE device_classes SET " + value);
  CHECK(classes().empty());
  CHECK(f.store->damaged_rows() == 1);
  f.write([](StoreWriter& writer) { writer.put_device_class(h200_class()); });
  REQUIRE(classes().size() == 1);
  CHECK(classes().begin()->second.facts == h200());
}

TEST_CASE("an export counts the rows that lack their device class because it is damaged") {
  TwoRecords f;
  f.write([](StoreWriter& writer) { writer.put_trial(trial_row("a")); });
  ExportOptions options;
  options.all_trials = true;
  const auto exported = [&] {
    return f.read([&](StoreReader& reader) { return export_table(reader, options); });
  };
  f.damage("UPDATE device_classes SET fact = x'7b'");
  CHECK(exported().table.records.empty());
  CHECK(exported().damaged_left_out == 3);
  f.write([](StoreWriter& writer) { writer.put_device_class(h200_class()); });
  CHECK(exported().table.records.size() == 2);
  CHECK(exported().damaged_left_out == 0);
}

TEST_CASE("a damaged trial is passed over until the next one with its key repairs it") {
  StoreFixture f;
  const TrialRow trial = trial_row("a");
  const TrialGroup group{trial.kernel, {}, trial.problem, trial.device_class, trial.policy, "580"};
  const auto found = [&] { return f.read([&](StoreReader& reader) { return reader.trials(group).size(); }); };
  f.write([&](StoreWriter& writer) { writer.put_trial(trial); });
  f.damage("UPDATE trials SET fact = x'7b'");
  CHECK(found() == 0);
  f.write([&](StoreWriter& writer) { writer.put_trial(trial); });
  CHECK(found() == 1);
}

TEST_CASE("a damaged block of samples is left out until it is measured again") {
  StoreFixture f;
  const TrialRow trial = trial_row("a");
  const auto found = [&] { return f.read([&](StoreReader& reader) { return reader.blocks(trial).size(); }); };
  bool stored = false;
  const auto put = [&](StoreWriter& writer) { stored = writer.put_block(block_row(trial, 0)); };
  f.write([&](StoreWriter& writer) {
    writer.put_trial(trial);
    writer.put_block(block_row(trial, 0));
    writer.put_block(block_row(trial, 1));
  });
  f.damage("UPDATE blocks SET " + std::string(GENERATE("fact = x'00'", "job = 'another'")) +
           " WHERE position = 0");
  CHECK(found() == 1);
  f.write(put);
  CHECK(stored);
  CHECK(found() == 2);
}

TEST_CASE("a damaged verification is left out") {
  StoreFixture f;
  VerificationRow row;
  *row.mutable_verification() = comparison_of(problem_of(4097));
  row.mutable_verification()->set_trial_key(bytes_of(trial_row("a").key.digest));
  f.write([&](StoreWriter& writer) {
    writer.put_trial(trial_row("a"));
    writer.put_verification(row);
  });
  f.damage("UPDATE verifications SET outcome = 'korrect'");
  CHECK(f.read([](StoreReader& reader) { return reader.verifications(trial_row("a")); }).empty());
}

TEST_CASE("a damaged artifact is absent until the next one with its key replaces it") {
  StoreFixture f;
  const ArtifactRow artifact = artifact_row("a", "cubin");
  const auto found = [&] {
    return f.read([&](StoreReader& reader) { return reader.artifact(artifact.key); });
  };
  f.write([&](StoreWriter& writer) { writer.put_artifact(artifact); });
  f.damage(GENERATE("UPDATE artifacts SET fact = x''", "UPDATE artifacts SET kernel = 'another'",
                    "UPDATE artifacts SET cubin = zeroblob(32)",
                    "UPDATE artifacts SET fact = CAST(replace(CAST(fact AS TEXT), '_', '~') AS BLOB)"));
  CHECK_FALSE(found());
  f.write([&](StoreWriter& writer) { writer.put_artifact(artifact); });
  CHECK(found() == artifact);
}

TEST_CASE("the bytes of another cubin are never read as the asked one") {
  StoreFixture f;
  f.write([](StoreWriter& writer) {
    writer.put_blob(blob_of("one"));
    writer.put_blob(blob_of("two"));
  });
  f.damage(
      "UPDATE blobs SET (cubin_bytes, zstd, zstd_sha256) = (SELECT cubin_bytes, zstd, zstd_sha256 FROM blobs "
      "WHERE rowid = 2) WHERE rowid = 1");
  const auto blob = [&](const std::string& cubin) {
    return f.read([&](StoreReader& reader) { return reader.blob(Digest::of(cubin)); });
  };
  CHECK_THROWS_WITH(blob("one"), Contains("are those of another one"));
  CHECK(blob("two")->zstd == blob_of("two").zstd);
}

/// SQL that an index no longer has its table's rows after.
const std::string kEmptyIndex =
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = sql || ' WHERE 0' WHERE name = "
    "'artifacts_by_kernel'; "
    "PRAGMA writable_schema = RESET; REINDEX artifacts_by_kernel; PRAGMA writable_schema = ON; "
    "UPDATE sqlite_master SET sql = replace(sql, ' WHERE 0', '') WHERE name = 'artifacts_by_kernel'";

TEST_CASE("an index that lacks rows is made of its table again") {
  StoreFixture f;
  f.write([](StoreWriter& writer) { writer.put_artifact(artifact_row("a", "one")); });
  f.damage(kEmptyIndex);
  CHECK(f.read([](StoreReader& reader) { return reader.toolchains("vector_add"); }).size() == 1);
}

TEST_CASE("a pin of an unknown generation is pinned again") {
  StoreFixture f;
  const auto pin = [&](std::uint64_t generation) {
    std::uint64_t pinned = 0;
    f.write([&](StoreWriter& writer) { pinned = writer.pin_generation("job", generation); });
    return pinned;
  };
  CHECK(pin(0) == 0);
  f.damage(GENERATE("UPDATE pins SET generation = -1", "UPDATE pins SET generation = 1099511627776"));
  CHECK_FALSE(f.read([](StoreReader& reader) { return reader.pinned_generation("job"); }));
  CHECK(pin(0) == 0);
  CHECK(f.read([](StoreReader& reader) { return reader.pinned_generation("job"); }) == 0u);
}

TEST_CASE("a store whose note of its file is damaged is taken for a copy") {
  StoreFixture f;
  const Generation before = f.generation();
  f.damage("UPDATE meta SET file_identity = CAST(x'b13132' AS TEXT)");
  CHECK(f.generation().store_id != before.store_id);
}

TEST_CASE("damage of a toolchain is reported and counted by the rows of its artifacts") {
  StoreFixture f;
  const ArtifactRow a = artifact_row("a", "one");
  ArtifactRow b = artifact_row("b", "two");
  b.toolchain.nvrtc = Digest::of("another release of the same name");
  f.write([&](StoreWriter& writer) {
    writer.put_artifact(a);
    writer.put_artifact(b);
  });
  f.damage("UPDATE artifacts SET fact = x'e1'");
  CHECK(f.read([&](StoreReader& reader) { return reader.toolchains(a.kernel); }).empty());
  CHECK(f.store->damaged_rows() == 2);
}

TEST_CASE("a want with the fact of another one is left out of the list") {
  StoreFixture f;
  f.write([](StoreWriter& writer) {
    writer.count_want(question_of(1), "t1");
    writer.count_want(question_of(2), "t1");
  });
  f.damage("UPDATE wants SET fact = (SELECT w.fact FROM wants w WHERE w.key <> wants.key)");  // of the first
  const auto wants = f.read([](StoreReader& reader) { return reader.wants(); });
  CHECK(wants.size() == 1);
}

TEST_CASE("damage is reported with table and row and column") {
  StoreFixture f;
  const TrialRow trial = trial_row("a");
  f.write([&](StoreWriter& writer) { writer.put_trial(trial); });
  f.damage("UPDATE trials SET fact = x'7b'");
  CHECK_THROWS_WITH(f.read([&](StoreReader& reader) { return reader.trial(trial.key.digest, trial.kernel); }),
                    "store, table trials, row " + trial.key.digest.hex() +
                        "/worker/vector_add, column fact_sha256: is not that of the row: one of its bits has "
                        "changed");
}

TEST_CASE("a row that is damaged is counted once however often it is read") {
  TwoRecords f;
  f.damage_first("fact = x'00'");
  f.records();
  f.records();
  CHECK(f.store->damaged_rows() == 1);
}

// A daemon's job queue that meets the damage at its start.
struct DamagedJob : SchedulerFixture {
  explicit DamagedJob(const std::string& sql) {
    scheduler->agent_joined(agent_with(), link);
    id = submit().job.id;
    scheduler.reset();
    store.reset();
    beside_the_store().execute(sql);
    store = Store::open({path()});
    scheduler = make();
    scheduler->load();
  }
  std::filesystem::path path() { return folder.path() / "store.db"; }
  store::Database beside_the_store() { return {path(), store::Database::Mode::Create}; }
  std::string error() {
    std::string found;
    store->read([&](StoreReader& reader) {
      for (const JobRow& job : reader.ended_jobs()) {
        found =
            job.state == v1::Job::FAILED && !job.shown().finished_at().empty() ? job.shown().error() : found;
      }
    });
    return found;
  }
  std::string id;
};

TEST_CASE("an open job with a damaged value has failed with table and row and column as its error") {
  const std::string change = GENERATE("problem = '{'", "key = zeroblob(32)", "state = 'runninh'",
                                      "device_class = x'00'", "fact = x'7b'", "fact_sha256 = key");
  DamagedJob f("UPDATE jobs SET " + change);
  CHECK(f.scheduler->open_jobs().empty());
  CHECK_THAT(f.error(), Contains("table jobs, row " + f.id + ", column fact_sha256"));
  CHECK(f.store->damaged_rows() == 1);
}

TEST_CASE("an open job whose very id is damaged has failed nevertheless") {
  DamagedJob f("UPDATE jobs SET id = CAST(x'e1' AS TEXT)");
  CHECK_THAT(f.error(), Contains("row ?, column id: is not in UTF-8"));
}

TEST_CASE("an open job whose problem has become another one has failed and measures neither") {
  DamagedJob f("UPDATE jobs SET problem = replace(problem, '4096', '4097')");
  CHECK(f.scheduler->open_jobs().empty());
  CHECK_THAT(f.error(), Contains("is not that of the row"));
}

TEST_CASE("the question of a damaged job is taken up by a job of its own when it is asked again") {
  DamagedJob f("UPDATE jobs SET problem = '{'");
  CHECK(f.submit().job.id != f.id);
  CHECK(f.scheduler->open_jobs().size() == 1);
}

TEST_CASE("a job whose device class is damaged has failed and the next one mends the class") {
  DamagedJob f("UPDATE device_classes SET fact = x'7b'");
  CHECK(f.scheduler->open_jobs().empty());
  CHECK_THAT(f.error(), Contains("device class"));
  f.index.load(*f.store);
  f.scheduler->agent_joined(agent_with(), f.link);
  f.submit();
  f.scheduler = f.make();
  f.scheduler->load();
  CHECK(f.scheduler->open_jobs().size() == 1);
}

TEST_CASE("a damaged job keeps no queue from starting where the disk is full") {
  DamagedJob f("UPDATE jobs SET problem = problem");
  f.beside_the_store().execute("UPDATE jobs SET problem = '{'");
  const FullDisk full(0);
  f.scheduler = f.make();
  CHECK_NOTHROW(f.scheduler->load());
  CHECK(f.scheduler->open_jobs().empty());
}

}  // namespace
}  // namespace cubind::test
