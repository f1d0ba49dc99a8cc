#include <catch2/catch.hpp>

#include <sqlite3.h>
#include <sys/resource.h>

#include <csignal>

#include "base/error.hpp"
#include "base/file.hpp"
#include "server/answer/blob_cache.hpp"
#include "server/store/location.hpp"
#include "server/store/migration.hpp"
#include "tests/unit/server/full_disk.hpp"
#include "tests/unit/server/rows.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

struct StoreFixture {
  TempDir folder;
  std::filesystem::path path = folder.path() / "store.db";
  std::unique_ptr<Store> store = Store::open({path});

  void reopen() {
    store.reset();
    store = Store::open({path});
  }
  void write(const std::function<void(StoreWriter&)>& body) { store->write(body); }
  template <typename Read>
  auto read(Read read) {
    std::invoke_result_t<Read, StoreReader&> result{};
    store->read([&](StoreReader& reader) { result = read(reader); });
    return result;
  }
  Generation generation() {
    return read([](StoreReader& reader) { return reader.generation(); });
  }
  std::vector<RecordRow> records() {
    return read([](StoreReader& reader) { return reader.records({}); });
  }
  /// Behind the store's back, as a flipped bit on the disk would.
  void damage(const std::string& sql) {
    store.reset();
    sqlite3* database = nullptr;
    REQUIRE(sqlite3_open(path.c_str(), &database) == SQLITE_OK);
    CHECK(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
    sqlite3_close(database);
    store = Store::open({path});
  }
};

TrialGroup group_of(const TrialRow& trial) {
  return {trial.kernel, trial.problem, trial.device_class, trial.policy, driver_branch(trial.driver.version)};
}

ErrorCode code_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code();
  }
  FAIL("nothing was thrown");
  return ErrorCode::Internal;
}

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

TEST_CASE("a flipped bit in a stored cubin is DATA_LOSS and is never served") {
  StoreFixture f;
  f.write([&](StoreWriter& writer) { writer.put_blob(blob_of("cubin")); });
  f.damage("UPDATE blobs SET zstd = CAST(substr(zstd, 1, length(zstd) - 1) || x'00' AS BLOB)");
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

TEST_CASE("a record whose columns no longer give its key is DATA_LOSS") {
  StoreFixture f;
  f.write([&](StoreWriter& writer) {
    writer.put_device_class(h200_class());
    writer.put_record(record_row(4096));
  });
  f.damage("UPDATE records SET problem = replace(problem, '4096', '4097')");
  CHECK(code_of([&] { f.records(); }) == ErrorCode::DataLoss);
}

TEST_CASE("bytes that do not have the digest are refused") {
  StoreFixture f;
  Blob blob = blob_of("cubin");
  blob.cubin = Digest::of("another");
  CHECK(code_of([&] { f.write([&](StoreWriter& writer) { writer.put_blob(blob); }); }) ==
        ErrorCode::InvalidArgument);
}

TEST_CASE("a damaged trial is passed over until the next one with its key repairs it") {
  StoreFixture f;
  const TrialRow trial = trial_row("a");
  const auto found = [&] {
    return f.read([&](StoreReader& reader) { return reader.trials(group_of(trial)).size(); });
  };
  f.write([&](StoreWriter& writer) { writer.put_trial(trial); });
  f.damage("UPDATE trials SET full_key = x'00', configuration = '{'");
  CHECK(found() == 0);
  f.write([&](StoreWriter& writer) { writer.put_trial(trial); });
  CHECK(found() == 1);
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
  CHECK(f.read([&](StoreReader& reader) { return reader.trial(trial.key); })->series == 2);
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
  block.conditions = {1980, 3201, 61, 689'000, 0x44, true, true};
  block.timer = "cupti";
  block.tick_us = 0.032;
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
  row.trial = trial_row("a").key.digest;
  row.verification_digest = Digest::of("reference and tolerance");
  row.problem = problem_of(4097);
  row.after_timing = true;
  row.outcome = Outcome::WrongResult;
  row.worst_excess = 17.5;
  row.worst_output = "y";
  row.worst_index = 4096;
  row.mismatches = 3;
  row.same_bits = true;
  f.write([&](StoreWriter& writer) {
    writer.put_trial(trial_row("a"));
    writer.put_verification(row);
  });
  CHECK(f.read([](StoreReader& reader) { return reader.verifications(trial_row("a")); }) == std::vector{row});
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
  trial.fault_count = 1;
  f.write([&](StoreWriter& writer) {
    writer.put_trial(trial);
    trial.fault_count = 2;
    writer.put_trial(trial);
  });
  TrialGroup group{"vector_add", problem_of(4096), h200_class().digest, {}, "580"};
  const auto known = f.read([&](StoreReader& reader) { return reader.trials(group); });
  REQUIRE(known.size() == 1);
  CHECK(known[0].fault_count == 2);
  group.driver_branch = "590";
  CHECK(f.read([&](StoreReader& reader) { return reader.trials(group); }).empty());
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

TEST_CASE("an imported trial stands beside a measured one and neither replaces the other") {
  StoreFixture f;
  TrialRow imported = trial_row("a");
  imported.origin = Origin::Import;
  imported.key.full.clear();
  f.write([&](StoreWriter& writer) {
    writer.put_trial(imported);
    writer.put_trial(trial_row("a"));
  });
  CHECK(f.read([](StoreReader& reader) { return reader.all_trials({}); }).size() == 2);
  const TrialGroup group{"vector_add", problem_of(4096), h200_class().digest, {}, "580"};
  CHECK(f.read([&](StoreReader& reader) { return reader.trials(group); }).size() == 1);
}

struct RecordStore : StoreFixture {
  RecordStore() {
    write([](StoreWriter& writer) { writer.put_device_class(h200_class()); });
  }
  bool put(const RecordRow& row) {
    bool stored = false;
    write([&](StoreWriter& writer) { stored = writer.put_record(row); });
    return stored;
  }
};

TEST_CASE("records are append-only and a replaced one keeps the generations from and to which it held") {
  RecordStore f;
  f.put(record_row(4096, 20));
  f.put(record_row(4096, 19));
  RecordFilter all;
  all.current_only = false;
  const auto rows = f.read([&](StoreReader& reader) { return reader.records(all); });
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].from_generation == 1);
  CHECK(rows[0].to_generation == 2);
  CHECK(rows[1].from_generation == 2);
  CHECK_FALSE(rows[1].to_generation);
  CHECK(f.generation().number == 2);
}

TEST_CASE("one row per driver branch and toolchain major and none overwrites another") {
  RecordStore f;
  RecordRow other_driver = record_row(4096);
  other_driver.driver.version = "590.11.01";
  RecordRow other_toolchain = record_row(4096);
  other_toolchain.toolchain = toolchain("nvrtc 12.8");
  for (const RecordRow& row : {record_row(4096), other_driver, other_toolchain}) {
    CHECK(f.put(row));
  }
  CHECK(f.records().size() == 3);
}

TEST_CASE("an import never replaces a measurement and the same import is known") {
  RecordStore f;
  f.put(record_row(4096));
  RecordRow imported = record_row(4096, 15);
  imported.evidence = Evidence::Imported;
  CHECK(f.put(imported));
  CHECK(f.records().size() == 2);
  CHECK_FALSE(f.put(imported));
}

TEST_CASE("a provisional record never replaces an uncontended one which ends a provisional one") {
  RecordStore f;
  RecordRow provisional = record_row(4096);
  provisional.provisional = true;
  CHECK(f.put(provisional));
  CHECK(f.put(record_row(4096)));
  CHECK(f.records().size() == 1);
  CHECK_FALSE(f.put(provisional));
}

TEST_CASE("every field of a record survives the store") {
  RecordStore f;
  RecordRow row = record_row(4096);
  row.question.policy = {true, 1, true};
  row.question.numerics = {Numerics::Kind::Invariant, "N"};
  row.question.name_space = "team";
  row.contended = row.throttled = row.provisional = true;
  row.verification.digest = Digest::of("reference");
  f.put(row);
  const RecordRow read = f.records().at(0);
  CHECK(record_key(read.question) == record_key(row.question));
  CHECK(read.verification == row.verification);
  CHECK(read.configuration == row.configuration);
  CHECK(read.finalists == row.finalists);
  CHECK(read.contended);
}

TEST_CASE("a store id is drawn when a store is created and stays when it is opened again") {
  StoreFixture f;
  const std::string id = f.generation().store_id;
  CHECK(id.size() == 16);
  f.reopen();
  CHECK(f.generation().store_id == id);
}

TEST_CASE("a store id is redrawn when the store is rebuilt") {
  StoreFixture f;
  const std::string id = f.generation().store_id;
  f.store.reset();
  std::filesystem::remove(f.path);
  f.store = Store::open({f.path});
  CHECK(f.generation().store_id != id);
}

TEST_CASE("a store id is redrawn when a copy is put in the store's place") {
  StoreFixture f;
  const std::string id = f.generation().store_id;
  f.store.reset();
  std::filesystem::copy_file(f.path, f.folder.path() / "backup.db");
  std::filesystem::rename(f.folder.path() / "backup.db", f.path);
  f.store = Store::open({f.path});
  CHECK(f.generation().store_id != id);
}

TEST_CASE("a store id is redrawn when an older copy is written over the store") {
  StoreFixture f;
  f.write([](StoreWriter& writer) { writer.next_generation(); });
  f.store.reset();
  std::filesystem::copy_file(f.path, f.folder.path() / "backup.db");
  f.store = Store::open({f.path});
  const std::string id = f.generation().store_id;
  f.write([](StoreWriter& writer) { writer.next_generation(); });
  f.store.reset();
  std::filesystem::copy_file(f.folder.path() / "backup.db", f.path,
                             std::filesystem::copy_options::overwrite_existing);
  f.store = Store::open({f.path});
  CHECK(f.generation().number == 1);
  CHECK(f.generation().store_id != id);
}

TEST_CASE("a store id stays when the generation has grown and the store is opened again") {
  StoreFixture f;
  const std::string id = f.generation().store_id;
  f.write([](StoreWriter& writer) { writer.next_generation(); });
  f.reopen();
  CHECK(f.generation() == Generation{id, 1});
}

TEST_CASE("a second daemon on the same store is refused") {
  StoreFixture f;
  CHECK_THROWS_WITH(Store::open({f.path}), Contains("another cubind"));
}

TEST_CASE("network file systems are told from local ones") {
  CHECK(store::is_network_file_system(0x6969));
  CHECK(store::is_network_file_system(0xff534d42));
  CHECK(store::is_network_file_system(0x0bd00bd0));
  CHECK_FALSE(store::is_network_file_system(0xef53));      // ext4
  CHECK_FALSE(store::is_network_file_system(0x01021994));  // tmpfs
}

TEST_CASE("a store that could not write is read-only until it can and then goes on by itself") {
  StoreFixture f;
  f.write([](StoreWriter& writer) { writer.put_device_class(h200_class()); });
  const std::string large(200'000, 'x');
  TrialRow trial = trial_row("a");
  trial.detail = large;
  {
    const FullDisk full(100'000);
    CHECK_THROWS_AS(f.write([&](StoreWriter& writer) { writer.put_trial(trial); }), Error);
    CHECK(f.store->read_only_reason());
    CHECK_FALSE(f.store->try_recover());
    CHECK(f.read([](StoreReader& reader) { return reader.device_classes(); }).size() == 1);
  }
  CHECK(f.store->try_recover());
  CHECK_FALSE(f.store->read_only_reason());
  CHECK_NOTHROW(f.write([&](StoreWriter& writer) { writer.put_trial(trial); }));
}

TEST_CASE("a full store is read-only with a reason and nothing half-written in it") {
  TempDir folder;
  StoreOptions options{folder.path() / "store.db"};
  options.max_pages = 200;
  const auto store = Store::open(options);
  const auto fill = [&](int i) {
    std::string noise;
    for (int k = 0; k < 2000; ++k) {
      noise += Digest::of(std::to_string(i) + "/" + std::to_string(k)).view();
    }
    store->write([&](StoreWriter& writer) { writer.put_blob(blob_of(noise)); });
  };
  CHECK(code_of([&] {
          for (int i = 0; i < 40; ++i) fill(i);
        }) == ErrorCode::ResourceExhausted);
  REQUIRE(store->read_only_reason());
  CHECK_THAT(*store->read_only_reason(), Contains("full"));
  CHECK_FALSE(store->try_recover());
  std::uint64_t artifacts = 1;
  store->read([&](StoreReader& reader) { artifacts = reader.counts().artifacts; });
  CHECK(artifacts == 0);
}

TEST_CASE("a migration that fails leaves the file as it was") {
  TempDir folder;
  store::Database database(folder.path() / "x.db", store::Database::Mode::Create);
  const std::vector<std::string> first{"CREATE TABLE a (x)"};
  CHECK(store::migrate(database, first, "x.db"));
  const std::vector<std::string> broken{first[0], "CREATE TABLE b (x); CREATE TABLE a (y)"};
  CHECK_THROWS_AS(store::migrate(database, broken, "x.db"), Error);
  CHECK_THROWS_AS(database.execute("SELECT * FROM b"), Error);
  const std::vector<std::string> good{first[0], "CREATE TABLE b (x)"};
  CHECK_FALSE(store::migrate(database, good, "x.db"));
  CHECK_NOTHROW(database.execute("SELECT * FROM b"));
}

TEST_CASE("a new file whose first row cannot be written stays new") {
  TempDir folder;
  store::Database database(folder.path() / "x.db", store::Database::Mode::Create);
  const std::vector<std::string> steps{"CREATE TABLE a (x)"};
  CHECK_THROWS_AS(store::migrate(database, steps, "x.db", [] { throw Error(ErrorCode::Internal, "", ""); }),
                  Error);
  bool filled = false;
  CHECK(store::migrate(database, steps, "x.db", [&] { filled = true; }));
  CHECK(filled);
}

TEST_CASE("a database of another application is refused and stays as it was") {
  const TempDir folder;
  const auto path = folder.path() / "other.db";
  store::Database(path, store::Database::Mode::Create).execute("CREATE TABLE t (x)");
  const std::string before = read_file(path);
  CHECK_THROWS_WITH(Store::open({path}), Contains("another application"));
  CHECK(read_file(path) == before);
}

TEST_CASE("a store of a newer cubind and a database of another application are refused") {
  StoreFixture f;
  f.store.reset();
  {
    store::Database database(f.path, store::Database::Mode::Create);
    database.execute("PRAGMA user_version = 99");
  }
  CHECK_THROWS_WITH(Store::open({f.path}), Contains("newer"));
  store::Database(f.folder.path() / "other.db", store::Database::Mode::Create).execute("CREATE TABLE t (x)");
  CHECK_THROWS_WITH(Store::open({f.folder.path() / "other.db"}), Contains("another application"));
}

TEST_CASE("wants are counted by question most asked first") {
  StoreFixture f;
  f.write([](StoreWriter& writer) {
    writer.count_want(question_of(1), "t1");
    writer.count_want(question_of(2), "t1");
    writer.count_want(question_of(2), "t2");
  });
  const auto wants = f.read([](StoreReader& reader) { return reader.wants(); });
  REQUIRE(wants.size() == 2);
  CHECK(wants[0].question.problem == problem_of(2));
  CHECK(wants[0].count == 2);
  CHECK(wants[0].last_at == "t2");
}

TEST_CASE("a want leaves the list when a record for it is stored") {
  StoreFixture f;
  f.write([](StoreWriter& writer) {
    writer.put_device_class(h200_class());
    writer.count_want(question_of(1), "t1");
    writer.count_want(question_of(2), "t1");
    writer.put_record(record_row(1));
  });
  const auto wants = f.read([](StoreReader& reader) { return reader.wants(); });
  REQUIRE(wants.size() == 1);
  CHECK(wants[0].question.problem == problem_of(2));
}

TEST_CASE("a full want list drops what was asked least and longest ago") {
  StoreFixture f;
  f.write([](StoreWriter& writer) {
    writer.count_want(question_of(1), "t1");
    writer.count_want(question_of(1), "t1");
    for (std::int64_t n = 2; n <= kMaxWants + 1; ++n) {
      writer.count_want(question_of(n), n == 7 ? "t0" : "t2");
    }
  });
  const auto wants = f.read([](StoreReader& reader) { return reader.wants(); });
  REQUIRE(wants.size() == kMaxWants);
  CHECK(wants[0].question.problem == problem_of(1));
  CHECK(std::ranges::none_of(wants,
                             [](const WantRow& want) { return want.question.problem == problem_of(7); }));
}

TEST_CASE("of two open jobs with the same key the second is refused") {
  StoreFixture f;
  JobRow job;
  job.id = "a";
  job.key = Digest::of("key");
  job.question = question_of(1);
  f.write([&](StoreWriter& writer) { writer.put_job(job); });
  job.id = "b";
  CHECK_THROWS_AS(f.write([&](StoreWriter& writer) { writer.put_job(job); }), Error);
  CHECK(f.read([](StoreReader& reader) { return reader.jobs(false); }).size() == 1);
}

TEST_CASE("damaged bytes of a cubin are replaced by those that are put again") {
  StoreFixture f;
  const auto put = [](StoreWriter& writer) { writer.put_blob(blob_of("cubin")); };
  f.write(put);
  f.damage("UPDATE blobs SET zstd = x'00'");
  f.write(put);
  CHECK(f.read([](StoreReader& reader) { return reader.blob(Digest::of("cubin")); })->zstd ==
        blob_of("cubin").zstd);
}

TEST_CASE("a damaged cubin found by the cache is no longer stored") {
  StoreFixture f;
  f.write([](StoreWriter& writer) { writer.put_blob(blob_of("cubin")); });
  f.damage("UPDATE blobs SET zstd = x'00'");
  BlobCache cache(*f.store, 1 << 20);
  CHECK(cache.find(Digest::of("cubin")) == nullptr);
  CHECK_FALSE(f.read([](StoreReader& reader) { return reader.has_blob(Digest::of("cubin")); }));
}

TEST_CASE("a store is the same one by a link that leads to it") {
  StoreFixture f;
  const auto link = f.folder.path() / "link.db";
  std::filesystem::create_symlink("store.db", link);
  CHECK_THROWS_WITH(Store::open({link}), Contains("another cubind"));
  f.store.reset();
  CHECK(Store::open({link})->path() == f.path);
}

TEST_CASE("one write waits for another process's lock and those after it do not") {
  using std::chrono::steady_clock;
  StoreFixture f;
  f.store.reset();
  StoreOptions options{f.path};
  options.patience = std::chrono::milliseconds(1500);
  f.store = Store::open(options);
  sqlite3* other = nullptr;
  REQUIRE(sqlite3_open(f.path.c_str(), &other) == SQLITE_OK);
  REQUIRE(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK);
  const auto put = [](StoreWriter& writer) { writer.put_device_class(h200_class()); };
  CHECK_THROWS_AS(f.write(put), Error);
  const auto before = steady_clock::now();
  for (int i = 0; i < 5; ++i) CHECK_THROWS_AS(f.write(put), Error);
  CHECK(steady_clock::now() - before < 2 * options.patience);
  sqlite3_close(other);
  CHECK_NOTHROW(f.write(put));
}

}  // namespace
}  // namespace cubind::test
