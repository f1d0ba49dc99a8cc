#include "server/service/reply_cache.hpp"

#include <catch2/catch.hpp>

#include <random>

#include "server/store/rows.hpp"

namespace cubind::test {
namespace {

WireReply reply_of(const std::string& kernel, const Blob* blob = nullptr) {
  v1::GetVariantReply reply;
  reply.set_kernel(kernel);
  reply.mutable_artifact()->set_toolchain("nvrtc 13.0");
  return to_wire_reply(reply, blob);
}

std::shared_ptr<const CachedBlob> cached_blob() {
  return std::make_shared<const CachedBlob>(Blob{Digest::of("cubin"), 400, std::string(300, 'z')});
}

v1::GetVariantReply parsed(const grpc::ByteBuffer& message) {
  grpc::Slice bytes;
  REQUIRE(message.DumpToSingleSlice(&bytes).ok());
  v1::GetVariantReply reply;
  REQUIRE(reply.ParseFromArray(bytes.begin(), static_cast<int>(bytes.size())));
  return reply;
}

constexpr ReplyState kState{1, 1, 1, 1};

/// One part: what makes room for what does not depend on hashes.
struct OnePart : ReplyCache {
  explicit OnePart(std::size_t max_bytes) : ReplyCache(max_bytes, 1) {}

  void keep(const std::string& request, const WireReply& reply) {
    ReplyCache::keep(request, kState, reply, nullptr);
  }
  std::string kernel_of(const std::string& request) {
    const auto known = find(request, kState);
    return known ? parsed(assemble(known->head, known->blob)).kernel() : "none";
  }
};

TEST_CASE("what was kept is found by the bytes of its request alone") {
  OnePart cache(1 << 20);
  CHECK_FALSE(cache.find("a", kState));
  cache.keep("a", reply_of("first"));
  cache.keep("b", reply_of("second"));
  CHECK(cache.kernel_of("a") == "first");
  CHECK(cache.kernel_of("b") == "second");
  CHECK(cache.kernel_of("ab") == "none");
}

TEST_CASE("what is kept again replaces what was kept for the same request") {
  OnePart cache(1 << 20);
  CHECK_FALSE(cache.find("a", kState));
  cache.keep("a", reply_of("first"));
  cache.keep("a", reply_of("second"));
  CHECK(cache.kernel_of("a") == "second");
}

TEST_CASE("nothing is found once any part of the state has been replaced") {
  for (const ReplyState& other : {ReplyState{2, 1, 1, 1}, {1, 2, 1, 1}, {1, 1, 2, 1}, {1, 1, 1, 2}}) {
    OnePart cache(1 << 20);
    CHECK_FALSE(cache.find("a", kState));
    cache.keep("a", reply_of("old"));
    REQUIRE(cache.find("a", kState));
    CHECK_FALSE(cache.find("a", other));
    CHECK_FALSE(cache.find("a", kState));
  }
}

TEST_CASE("a reply that was worked out under an earlier state is not kept") {
  OnePart cache(1 << 20);
  CHECK_FALSE(cache.find("a", {2, 1, 1, 1}));
  cache.keep("a", reply_of("outdated"));
  CHECK_FALSE(cache.find("a", {2, 1, 1, 1}));
}

TEST_CASE("as many replies stay as there is room for") {
  OnePart cache(1200);
  CHECK_FALSE(cache.find("a", kState));
  for (int i = 0; i < 20; ++i) {
    cache.keep(std::to_string(i), reply_of("some kernel"));
  }
  int left = 0;
  for (int i = 0; i < 20; ++i) {
    left += cache.find(std::to_string(i), kState) ? 1 : 0;
  }
  CHECK(left == static_cast<int>(1200 / ReplyTable::cost("19", reply_of("some kernel"))));
}

TEST_CASE("a reply that is asked for again and again outlives any number of others") {
  OnePart cache(20'000);
  CHECK_FALSE(cache.find("a", kState));
  cache.keep("a", reply_of("a"));
  for (int i = 0; i < 1000; ++i) {
    cache.keep("other " + std::to_string(i), reply_of("other"));
    REQUIRE(cache.kernel_of("a") == "a");
  }
  CHECK(cache.kernel_of("other 0") == "none");
}

TEST_CASE("what is found in a crowded cache is the reply of the very request") {
  OnePart cache(40'000);
  CHECK_FALSE(cache.find("a", kState));
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::string request = std::to_string(random() % 400);
    if (const std::string kernel = cache.kernel_of(request); kernel != "none") {
      REQUIRE(kernel == request);
    } else {
      cache.keep(request, reply_of(request));
      REQUIRE(cache.kernel_of(request) == request);
    }
  }
}

TEST_CASE("a reply larger than the cache is not kept") {
  OnePart cache(1000);
  CHECK_FALSE(cache.find("a", kState));
  cache.keep("b", reply_of("b"));
  cache.keep("a", reply_of(std::string(2000, 'k')));
  CHECK(cache.kernel_of("a") == "none");
  CHECK(cache.kernel_of("b") == "b");
}

TEST_CASE("the parts of a cache hold what is theirs") {
  ReplyCache cache(1 << 20);
  for (int i = 0; i < 200; ++i) {
    const std::string request = std::to_string(i);
    CHECK_FALSE(cache.find(request, kState));
    cache.keep(request, kState, reply_of(request), nullptr);
  }
  for (int i = 0; i < 200; ++i) {
    const auto known = cache.find(std::to_string(i), kState);
    REQUIRE(known);
    CHECK(parsed(assemble(known->head, nullptr)).kernel() == std::to_string(i));
  }
  CHECK(cache.found() == 200);
}

TEST_CASE("the cubin's bytes join the artifact of the reply") {
  const auto blob = cached_blob();
  const v1::GetVariantReply reply = parsed(assemble(reply_of("scale", blob.get()).head, blob));
  CHECK(reply.kernel() == "scale");
  CHECK(reply.artifact().toolchain() == "nvrtc 13.0");
  CHECK(reply.artifact().zstd_cubin() == blob->zstd);
}

TEST_CASE("a message keeps its cubin's bytes alive") {
  auto blob = cached_blob();
  const std::weak_ptr<const Blob> watched = blob;
  {
    const grpc::ByteBuffer message = assemble(reply_of("scale", blob.get()).head, blob);
    blob.reset();
    CHECK(parsed(message).artifact().zstd_cubin() == std::string(300, 'z'));
  }
  CHECK(watched.expired());
}

TEST_CASE("a kept reply does not keep its cubin's bytes in RAM and still names them") {
  ReplyCache cache(1 << 20);
  auto blob = cached_blob();
  CHECK_FALSE(cache.find("a", kState));
  cache.keep("a", kState, reply_of("a", blob.get()), blob);
  CHECK(cache.find("a", kState)->blob == blob);
  const std::weak_ptr<const Blob> watched = blob;
  blob.reset();
  CHECK(watched.expired());
  const auto known = cache.find("a", kState);
  REQUIRE(known);
  CHECK(known->blob == nullptr);
  CHECK(known->cubin->cubin == Digest::of("cubin"));
  CHECK(cache.found() == 1);
}

TEST_CASE("bytes that differ from those that a message announces are not its end") {
  const auto blob = cached_blob();
  const WireReply reply = reply_of("a", blob.get());
  CHECK(reply.cubin->is(*blob));
  CHECK_FALSE(reply.cubin->is({blob->cubin, 400, std::string(299, 'z')}));
  CHECK_FALSE(reply.cubin->is({Digest::of("another"), 400, blob->zstd}));
}

}  // namespace
}  // namespace cubind::test
