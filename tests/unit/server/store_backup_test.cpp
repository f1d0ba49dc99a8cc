// Copies of a store, its check, and names under which it is refused.
#include <catch2/catch.hpp>

#include <unistd.h>

#include "server/store/sqlite/backup.hpp"
#include "server/store/sqlite/store_check.hpp"
#include "tests/unit/server/store_fixture.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

/// Whatever a descriptor holds, in a file of that name.
void save(const UniqueFd& from, const std::filesystem::path& to) {
  std::string bytes(static_cast<std::size_t>(::lseek(from.get(), 0, SEEK_END)), '\0');
  REQUIRE(::pread(from.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  write_file_atomic(to, bytes, 0600);
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& item : std::filesystem::directory_iterator(folder)) {
    names.push_back(item.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

struct BackedUp : RecordStore {
  BackedUp() { REQUIRE(put(record_row(512))); }
  std::filesystem::path copy = folder.path() / "copy.db";
  void back_up() { save(store->snapshot(), copy); }
};

TEST_CASE("a backup has what was committed and none of a transaction that is open") {
  BackedUp f;
  f.write([&](StoreWriter& writer) {
    writer.next_generation();
    f.back_up();
  });
  const auto copied = Store::open({f.copy});
  std::size_t records = 0;
  Generation generation;
  copied->read([&](StoreReader& reader) {
    records = reader.records({}).size();
    generation = reader.generation();
  });
  CHECK(records == 1);
  CHECK(generation.number == 1);
  CHECK(f.generation().number == 2);
}

TEST_CASE("a backup leaves no file next to the store and those of other names as they were") {
  BackedUp f;
  const auto earlier = f.path.string() + ".backup";
  write_file_atomic(earlier, "an operator's");
  const auto before = names_in(f.folder.path());
  const UniqueFd copy = f.store->snapshot();
  CHECK(names_in(f.folder.path()) == before);
  CHECK(read_file(earlier) == "an operator's");
}

TEST_CASE("a sound store and its backup pass the check") {
  BackedUp f;
  f.back_up();
  f.store.reset();
  for (const auto& path : {f.path, f.copy}) {
    const StoreCheck check = check_store(path);
    CHECK(check.damage.empty());
    CHECK(check.records == 1);
    CHECK_FALSE(std::filesystem::exists(path.string() + "-wal"));
  }
}

TEST_CASE("a check names the damaged row and cubin and the row that lost another") {
  const auto [sql, named] = GENERATE(table<std::string, std::string>(
      {{"UPDATE records SET provisional = 1 - provisional", "records"},
       {"INSERT INTO blobs (cubin, cubin_bytes, zstd, zstd_sha256) VALUES (zeroblob(32), 1, x'00', x'00')",
        "cubin"},
       {"PRAGMA foreign_keys = OFF; DELETE FROM device_classes", "device_classes"}}));
  BackedUp f;
  f.damage(sql);
  f.store.reset();
  const StoreCheck check = check_store(f.path);
  REQUIRE(check.damage.size() >= 1);
  CHECK_THAT(check.damage.front(), Contains(named));
}

TEST_CASE("a store that a daemon has and a file that is none are not checked") {
  BackedUp f;
  CHECK_THROWS_WITH(check_store(f.path), Contains("another cubind"));
  CHECK_THROWS_WITH(check_store(f.folder.path() / "none.db"), Contains("no such store"));
}

TEST_CASE("a store with two names is refused by name") {
  BackedUp f;
  f.store.reset();
  const auto other = f.folder.path() / "other.db";
  std::filesystem::create_hard_link(f.path, other);
  CHECK_THROWS_WITH(Store::open({other}), Contains(other.string()) && Contains("hard links"));
  CHECK_THROWS_WITH(check_store(f.path), Contains("hard links"));
}

}  // namespace
}  // namespace cubind::test
