#include "server/answer/artifact_budget.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/server/store_fixture.hpp"

namespace cubind::test {
namespace {

/// Incompressible, so that the sizes in the store are about these.
Blob blob_with(const std::string& name) {
  std::string bytes;
  while (bytes.size() < 4096) {
    bytes += Digest::of(name + std::to_string(bytes.size())).view();
  }
  return blob_of(bytes);
}

struct BudgetStore : RecordStore {
  BudgetStore() {
    for (const Blob* blob : {&oldest, &middle, &latest}) {
      write([&](StoreWriter& writer) { writer.put_blob(*blob); });
      bytes += blob->zstd.size();
    }
    date(oldest, "2026-01-01T00:00:00.000Z");
    date(middle, "2026-01-02T00:00:00.000Z");
    date(latest, "2026-01-03T00:00:00.000Z");
  }
  void date(const Blob& blob, const std::string& when) {
    damage("UPDATE blob_uses SET last_used_at = '" + when + "' WHERE cubin = x'" + blob.cubin.hex() + "'");
  }
  bool has(const Blob& blob) {
    return read([&](StoreReader& reader) { return reader.has_blob(blob.cubin); });
  }
  /// Room for all but one byte.
  std::uint64_t keep_one_less() {
    BlobCache cache(*store, 0);
    ArtifactBudget budget(*store, cache, bytes - 1);
    budget.keep();
    return budget.evicted();
  }

  const Blob oldest = blob_with("oldest"), middle = blob_with("middle"), latest = blob_with("latest");
  std::uint64_t bytes = 0;
};

TEST_CASE("above the room for cubins the one that was used longest ago goes") {
  BudgetStore f;
  CHECK(f.keep_one_less() == 1);
  CHECK_FALSE(f.has(f.oldest));
  CHECK(f.has(f.middle));
  CHECK(f.read([](StoreReader& reader) { return reader.counts().cubin_bytes; }) < f.bytes);
}

TEST_CASE("within the room and without a limit every cubin stays") {
  BudgetStore f;
  BlobCache cache(*f.store, 0);
  for (const std::uint64_t room : {f.bytes, std::uint64_t{0}}) {
    ArtifactBudget budget(*f.store, cache, room);
    budget.keep();
    CHECK(budget.evicted() == 0);
  }
}

TEST_CASE("the measured cubin of a current record stays however long ago it was used") {
  BudgetStore f;
  RecordRow record = record_row(512);
  record.cubin = f.oldest.cubin;
  REQUIRE(f.put(record));
  CHECK(f.keep_one_less() == 1);
  CHECK(f.has(f.oldest));
  CHECK_FALSE(f.has(f.middle));
}

TEST_CASE("the cubin of a replaced record stays while its generation is pinned") {
  BudgetStore f;
  RecordRow record = record_row(512);
  record.cubin = f.oldest.cubin;
  REQUIRE(f.put(record));
  f.write([&](StoreWriter& writer) { writer.pin_generation("job", writer.generation().number); });
  record.cubin = f.latest.cubin;
  REQUIRE(f.put(record));
  CHECK(f.keep_one_less() == 1);
  CHECK(f.has(f.oldest));
  CHECK_FALSE(f.has(f.middle));
}

TEST_CASE("a cubin that was served counts as used also when the cache has no room for it") {
  const std::size_t cache_bytes = GENERATE(0, 4200, 1 << 20);
  BudgetStore f;
  BlobCache cache(*f.store, cache_bytes);
  ArtifactBudget budget(*f.store, cache, f.bytes - 1);
  REQUIRE(cache.find(f.oldest.cubin));
  budget.keep();
  CHECK(f.has(f.oldest));
  CHECK_FALSE(f.has(f.middle));
}

TEST_CASE("cubins that records need stay although they take more than the room") {
  BudgetStore f;
  for (const Blob* blob : {&f.oldest, &f.middle, &f.latest}) {
    RecordRow record = record_row(512 + (blob == &f.middle ? 1 : 0) + (blob == &f.latest ? 2 : 0));
    record.cubin = blob->cubin;
    REQUIRE(f.put(record));
  }
  CHECK(f.keep_one_less() == 0);
  CHECK(f.has(f.oldest));
}

}  // namespace
}  // namespace cubind::test
