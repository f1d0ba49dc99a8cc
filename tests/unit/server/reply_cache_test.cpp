#include "server/service/reply_cache.hpp"

#include <catch2/catch.hpp>

#include "server/store/rows.hpp"

namespace cubind::test {
namespace {

WireReply reply_of(const std::string& kernel, std::optional<Digest> cubin = std::nullopt) {
  v1::GetVariantReply reply;
  reply.set_kernel(kernel);
  reply.mutable_artifact()->set_toolchain("nvrtc 13.0");
  return to_wire_reply(reply, cubin);
}

v1::GetVariantReply parsed(const grpc::ByteBuffer& message) {
  grpc::Slice bytes;
  REQUIRE(message.DumpToSingleSlice(&bytes).ok());
  v1::GetVariantReply reply;
  REQUIRE(reply.ParseFromArray(bytes.begin(), static_cast<int>(bytes.size())));
  return reply;
}

ReplyState new_state() { return {std::make_shared<const IndexSnapshot>(), nullptr, nullptr, 0}; }

std::string kernel_of(const std::optional<WireReply>& reply) {
  return reply ? parsed(assemble(*reply, nullptr)).kernel() : "none";
}

TEST_CASE("what was kept is found by the bytes of its request alone") {
  ReplyCache cache(1 << 20);
  const ReplyState state = new_state();
  CHECK_FALSE(cache.find("a", state));
  cache.keep("a", state, reply_of("first"));
  cache.keep("b", state, reply_of("second"));
  CHECK(kernel_of(cache.find("a", state)) == "first");
  CHECK(kernel_of(cache.find("b", state)) == "second");
  CHECK_FALSE(cache.find("ab", state));
}

TEST_CASE("nothing is found once any part of the state has been replaced") {
  const ReplyState state = new_state();
  ReplyState others[4] = {state, state, state, state};
  others[0].index = std::make_shared<const IndexSnapshot>();
  others[1].kernels = std::make_shared<const KernelLibrary::Entries>();
  others[2].agents = std::make_shared<const AgentProfiles>();
  others[3].artifacts = 1;
  for (const ReplyState& other : others) {
    ReplyCache cache(1 << 20);
    CHECK_FALSE(cache.find("a", state));
    cache.keep("a", state, reply_of("old"));
    CHECK_FALSE(cache.find("a", other));
    CHECK_FALSE(cache.find("a", state));
  }
}

TEST_CASE("a reply that was worked out under an earlier state is not kept") {
  ReplyCache cache(1 << 20);
  const ReplyState before = new_state();
  const ReplyState now = new_state();
  CHECK_FALSE(cache.find("a", now));
  cache.keep("a", before, reply_of("outdated"));
  CHECK_FALSE(cache.find("a", now));
}

TEST_CASE("what was not asked for the longest makes room") {
  ReplyCache cache(1200);
  const ReplyState state = new_state();
  CHECK_FALSE(cache.find("a", state));
  for (const char* request : {"a", "b", "c"}) {
    cache.keep(request, state, reply_of(request));
  }
  REQUIRE(cache.find("a", state));
  cache.keep("d", state, reply_of("d"));
  cache.keep("e", state, reply_of("e"));
  CHECK(kernel_of(cache.find("a", state)) == "a");
  CHECK_FALSE(cache.find("b", state));
}

TEST_CASE("the cubin's bytes join the artifact of the reply") {
  const auto blob = std::make_shared<const Blob>(Blob{Digest::of("cubin"), 400, std::string(300, 'z')});
  const v1::GetVariantReply reply = parsed(assemble(reply_of("scale", blob->cubin), blob));
  CHECK(reply.kernel() == "scale");
  CHECK(reply.artifact().toolchain() == "nvrtc 13.0");
  CHECK(reply.artifact().zstd_cubin() == blob->zstd);
}

TEST_CASE("a message keeps its cubin's bytes alive") {
  auto blob = std::make_shared<const Blob>(Blob{Digest::of("cubin"), 400, std::string(300, 'z')});
  const std::weak_ptr<const Blob> watched = blob;
  {
    const grpc::ByteBuffer message = assemble(reply_of("scale", blob->cubin), blob);
    blob.reset();
    CHECK(parsed(message).artifact().zstd_cubin() == std::string(300, 'z'));
  }
  CHECK(watched.expired());
}

}  // namespace
}  // namespace cubind::test
