// The store's file: its id, who may open it, its schema, a disk that takes no writes.
#include <catch2/catch.hpp>

#include <sqlite3.h>
#include <sys/stat.h>

#include "server/store/location.hpp"
#include "server/store/sqlite/database.hpp"
#include "server/store/sqlite/schema.hpp"
#include "server/store/sqlite/store_check.hpp"
#include "tests/support/full_disk.hpp"
#include "tests/support/shortest_of.hpp"
#include "tests/unit/server/store_fixture.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

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

TEST_CASE("a second store of a file is refused also where its lock file was removed") {
  StoreFixture f;
  std::filesystem::remove(f.path.string() + ".lock");
  CHECK_THROWS_WITH(Store::open({f.path}),
                    Contains(f.path.string()) && Contains("another cubind") && Contains(".lock was removed"));
  CHECK_THROWS_WITH(check_store(f.path), Contains("another cubind"));
  f.write([](StoreWriter& writer) { writer.next_generation(); });
  f.reopen();
}

TEST_CASE("a path that is no file is refused by its name and left alone") {
  const TempDir folder;
  const auto pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::filesystem::path& path : {std::filesystem::path("/dev/null"), pipe, folder.path()}) {
    CHECK_THROWS_WITH(Store::open({path}), Contains(path.string()) && Contains("not a file"));
    CHECK_THROWS_WITH(check_store(path), Contains(path.string()) && Contains("not a file"));
    CHECK_FALSE(std::filesystem::exists(path.string() + ".lock"));
  }
}

TEST_CASE("a second daemon on the same store gets the address of the first one and what to do") {
  TempDir folder;
  StoreOptions options{folder.path() / "store.db"};
  const auto socket = folder.path() / "cubind.sock";
  options.address = "unix://" + socket.string();
  const auto first = Store::open(options);
  const std::string pid = std::to_string(::getpid());
  CHECK_THROWS_WITH(Store::open({options.path}),
                    Contains("its socket was removed") && Contains("end it (kill " + pid + ")"));
  write_file_atomic(socket, "");
  CHECK_THROWS_WITH(Store::open({options.path}),
                    Contains("another cubind (pid " + pid + ", at " + options.address + ") has it open") &&
                        Contains("connect to that one (CUBIND_ADDRESS=" + options.address + ")") &&
                        Contains("its own --socket, and its own --db or --store"));
}

TEST_CASE("a folder that cannot be written is named with the options that name another") {
  TempDir folder;
  write_file_atomic(folder.path() / "file", "");
  CHECK_THROWS_WITH(Store::open({folder.path() / "file" / "data" / "store.db"}),
                    Contains((folder.path() / "file").string()) && Contains("--db PATH or XDG_DATA_HOME"));
  CHECK_THROWS_WITH(Store::open({"/proc/self/store.db"}),
                    Contains("/proc/self: cannot be written") && Contains("--db PATH or XDG_DATA_HOME"));
}

TEST_CASE("network file systems are distinguished from local ones") {
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
  trial.header().set_detail(large);
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

TEST_CASE("a store whose file is removed or replaced takes no writes until the file is back") {
  StoreFixture f;
  const auto change = [&] { f.write([](StoreWriter& writer) { writer.put_device_class(h200_class()); }); };
  change();
  const auto aside = f.path.string() + ".aside";
  std::filesystem::rename(f.path, aside);
  CHECK_THROWS_WITH(change(), Contains(f.path.string()) && Contains("removed or replaced"));
  CHECK(f.store->read_only_reason());
  write_file_atomic(f.path, "another file");
  CHECK_FALSE(f.store->try_recover());
  CHECK_THROWS_WITH(f.store->snapshot(), Contains("removed or replaced"));
  std::filesystem::rename(aside, f.path);
  CHECK(f.store->try_recover());
  CHECK_NOTHROW(change());
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
          for (int i = 0; i < 40; ++i) {
            fill(i);
          }
        }) == ErrorCode::ResourceExhausted);
  REQUIRE(store->read_only_reason());
  CHECK_THAT(*store->read_only_reason(),
             Contains("full") && Contains("make room on its disk, or raise --db-max-bytes"));
  CHECK_FALSE(store->try_recover());
  std::uint64_t artifacts = 1;
  store->read([&](StoreReader& reader) { artifacts = reader.counts().artifacts; });
  CHECK(artifacts == 0);
}

TEST_CASE("a new file whose first row cannot be written stays new") {
  TempDir folder;
  store::Database database(folder.path() / "x.db", store::Database::Mode::Create);
  CHECK_THROWS_AS(store::create_schema(database, "x.db", [] { throw Error(ErrorCode::Internal, "", ""); }),
                  Error);
  bool filled = false;
  CHECK(store::create_schema(database, "x.db", [&] { filled = true; }));
  CHECK(filled);
  CHECK_FALSE(store::create_schema(database, "x.db", [] { FAIL("it is a store already"); }));
}

TEST_CASE("a database of another application is refused and stays as it was") {
  const TempDir folder;
  const auto path = folder.path() / "other.db";
  store::Database(path, store::Database::Mode::Create).execute("CREATE TABLE t (x)");
  const std::string before = read_file(path);
  CHECK_THROWS_WITH(Store::open({path}), Contains("another application"));
  CHECK(read_file(path) == before);
}

TEST_CASE("a store of an older or a newer build is refused with what to do and stays as it was") {
  const std::string version = GENERATE("10", "14");
  StoreFixture f;
  f.store.reset();
  store::Database(f.path, store::Database::Mode::Create)
      .execute("CREATE TABLE of_another_version (x); PRAGMA user_version = " + version);
  const std::string before = read_file(f.path);
  const std::string refusal =
      f.path.string() + ": has schema version " + version +
      ", and this cubind uses version 13: export its records with the build that wrote it (cubindctl "
      "export), start this one with a new file (--db), and import them there (cubindctl import)";
  CHECK_THROWS_WITH(Store::open({f.path}), refusal);
  CHECK_THROWS_WITH(check_store(f.path), refusal);
  CHECK(read_file(f.path) == before);
}

/// What the files next to the store are called.
std::vector<std::string> damaged_files(const StoreFixture& f) {
  std::vector<std::string> names;
  for (const auto& item : std::filesystem::directory_iterator(f.folder.path())) {
    if (const std::string name = item.path().filename(); name.find("damaged") != std::string::npos) {
      names.push_back(name);
    }
  }
  return names;
}

TEST_CASE("a store with a damaged schema is renamed aside and a new one begun") {
  const std::string damage = GENERATE("UPDATE sqlite_master SET sql = replace(sql, 'store_id', 'store_ic')",
                                      "UPDATE sqlite_master SET sql = 'CREATE TABL' WHERE name = 'records'",
                                      "UPDATE sqlite_master SET rootpage = 1000 WHERE name = 'jobs'",
                                      "DELETE FROM sqlite_master WHERE name = 'trials'");
  CAPTURE(damage);
  StoreFixture f;
  const std::string id = f.generation().store_id;
  f.store.reset();
  store::Database(f.path, store::Database::Mode::Create).execute("PRAGMA writable_schema = ON; " + damage);
  const std::string before = read_file(f.path);
  f.store = Store::open({f.path});
  CHECK(f.generation().store_id != id);
  REQUIRE(damaged_files(f).size() == 1);
  CHECK_THAT(damaged_files(f)[0], Catch::Matchers::StartsWith("store.db.damaged-2"));
  CHECK(read_file(f.folder.path() / damaged_files(f)[0]) == before);
  CHECK_NOTHROW(f.write([](StoreWriter& writer) { writer.put_device_class(h200_class()); }));
}

TEST_CASE("whichever bit of a store's header has flipped a store is opened") {
  StoreFixture f;
  f.store.reset();
  const std::string sound = read_file(f.path);
  for (std::size_t bit = 0; bit < 100 * 8; bit += 3) {
    CAPTURE(bit / 8, bit % 8);
    std::string flipped = sound;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    write_file_atomic(f.path, flipped);
    CHECK_NOTHROW(Store::open({f.path}));
  }
}

TEST_CASE("a store whose header has another version than its schema is the same store") {
  const std::string number =
      GENERATE("user_version = 1", "user_version = 99", "user_version = -1", "application_id = 7");
  StoreFixture f;
  f.write([](StoreWriter& writer) { writer.put_device_class(h200_class()); });
  f.damage("PRAGMA " + number);
  CHECK(damaged_files(f).empty());
  CHECK(f.read([](StoreReader& reader) { return reader.device_classes(); }).size() == 1);
}

TEST_CASE("a file that never was a store is refused and stays where it is") {
  const TempDir folder;
  const auto path = folder.path() / "notes.txt";
  write_file_atomic(path, std::string(5000, 'n'));
  CHECK_THROWS_WITH(Store::open({path}), Contains("is no store of cubind"));
  CHECK_THROWS_WITH(Store::open({path}), Contains("is no store of cubind"));
  CHECK(read_file(path) == std::string(5000, 'n'));
}

TEST_CASE("a store is the same one by a link that leads to it") {
  StoreFixture f;
  const auto link = f.folder.path() / "link.db";
  std::filesystem::create_symlink("store.db", link);
  CHECK_THROWS_WITH(Store::open({link}), Contains("another cubind"));
  f.store.reset();
  CHECK(Store::open({link})->location() == f.path.string());
}

TEST_CASE("one write waits for another process's lock and those after it do not") {
  StoreFixture f;
  f.store.reset();
  StoreOptions options{f.path};
  options.patience = std::chrono::milliseconds(500);
  f.store = Store::open(options);
  sqlite3* other = nullptr;
  REQUIRE(sqlite3_open(f.path.c_str(), &other) == SQLITE_OK);
  REQUIRE(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK);
  const auto put = [](StoreWriter& writer) { writer.put_device_class(h200_class()); };
  CHECK_THROWS_AS(f.write(put), Error);
  CHECK(shortest_of(5, [&] { CHECK_THROWS_AS(f.write(put), Error); }) < options.patience);
  sqlite3_close(other);
  CHECK_NOTHROW(f.write(put));
}

}  // namespace
}  // namespace cubind::test
