#include "server/answer/blob_cache.hpp"

#include <catch2/catch.hpp>

#include "base/file.hpp"
#include "tests/unit/server/rows.hpp"

namespace cubind::test {
namespace {

/// A store with some cubins, and a cache with room for two of them.
struct BlobCacheFixture {
  BlobCacheFixture() {
    store->write([](StoreWriter& writer) {
      for (const char* cubin : {"a", "b", "c", "d"}) {
        writer.put_blob(blob_of(cubin));
      }
    });
  }
  std::shared_ptr<const CachedBlob> find(const std::string& cubin) { return cache.find(Digest::of(cubin)); }

  TempDir folder;
  std::unique_ptr<Store> store = Store::open({folder.path() / "store.db"});
  BlobCache cache{*store, 2 * blob_of("a").zstd.size()};
};

TEST_CASE("a cubin stays in RAM until others need its room") {
  BlobCacheFixture f;
  const std::weak_ptr<const CachedBlob> first = f.find("a");
  CHECK(f.find("a") == first.lock());
  f.find("b");
  CHECK_FALSE(first.expired());
  f.find("c");
  CHECK(first.expired());
  CHECK(f.find("a")->zstd == blob_of("a").zstd);
}

TEST_CASE("a cubin that was used since room was last made stays") {
  BlobCacheFixture f;
  f.find("a");
  const std::weak_ptr<const CachedBlob> unused = f.find("b");
  const std::weak_ptr<const CachedBlob> used = f.find("c");  // all have lost their first chance but this
  f.find("c");
  f.find("d");
  CHECK(unused.expired());
  CHECK_FALSE(used.expired());
}

TEST_CASE("serving a cubin without asking the cache counts as a use where it is said") {
  BlobCacheFixture f;
  f.find("a");
  const auto served = f.find("b");
  const std::weak_ptr<const CachedBlob> other = f.find("c");
  served->mark_used();
  f.find("d");
  CHECK(f.find("b") == served);
}

TEST_CASE("a cubin larger than the cache is served and not kept") {
  BlobCacheFixture f;
  BlobCache small(*f.store, 1);
  const auto first = small.find(Digest::of("a"));
  REQUIRE(first);
  CHECK(small.find(Digest::of("a")) != first);
}

TEST_CASE("a cubin that is not stored is not found") { CHECK(BlobCacheFixture().find("another") == nullptr); }

}  // namespace
}  // namespace cubind::test
