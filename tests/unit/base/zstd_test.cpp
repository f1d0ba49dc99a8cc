#include "base/zstd.hpp"

#include <zstd.h>

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/random.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind {
namespace {

std::string sample(std::size_t size) {
  Random random(3);
  std::string bytes;
  while (bytes.size() < size) {
    bytes.append(20, static_cast<char>(random.below(256)));
  }
  bytes.resize(size);
  return bytes;
}

ErrorCode code_of(std::string_view frame, std::size_t max_bytes) {
  const auto error = test::error_of([&] { zstd_decompress(frame, max_bytes); });
  return error ? error->code() : ErrorCode::Cancelled;
}

// A frame that does not say how long its content is.
std::string frame_without_size(const std::string& bytes) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  std::string frame(ZSTD_compressBound(bytes.size()), '\0');
  frame.resize(ZSTD_compress2(context, frame.data(), frame.size(), bytes.data(), bytes.size()));
  ZSTD_freeCCtx(context);
  return frame;
}

}  // namespace

TEST_CASE("compressed bytes come back unchanged and the same bytes compress alike") {
  for (const std::size_t size : {0u, 1u, 1000u, 300000u}) {
    const std::string bytes = sample(size);
    CHECK(zstd_decompress(zstd_compress(bytes), size) == bytes);
    CHECK(zstd_compress(bytes) == zstd_compress(bytes));
  }
  CHECK(zstd_compress(sample(300000)).size() < 100000);
}

TEST_CASE("content above the limit is refused by the frame's own word or by its bytes") {
  const std::string bytes = sample(200001);
  CHECK(code_of(zstd_compress(bytes), 200000) == ErrorCode::ResourceExhausted);
  CHECK(code_of(frame_without_size(bytes), 200000) == ErrorCode::ResourceExhausted);
  CHECK(zstd_decompress(frame_without_size(bytes), 200001) == bytes);
  CHECK(zstd_decompress(frame_without_size(bytes), 10000000) == bytes);
}

TEST_CASE("a bomb stops at the limit") {
  const std::string bomb = frame_without_size(std::string(100u << 20, '\0'));
  CHECK(bomb.size() < 20000);
  CHECK(code_of(bomb, 1u << 20) == ErrorCode::ResourceExhausted);
}

// Some bits of a frame mean nothing (the reserved one of its first byte, for example): flipping them may
// pass.
TEST_CASE("damage never changes the content silently") {
  const std::string bytes = sample(5000);
  const std::string frame = zstd_compress(bytes);
  std::size_t detected = 0;
  for (std::size_t bit = 0; bit < 8 * frame.size(); ++bit) {
    std::string damaged = frame;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    const ErrorCode code = code_of(damaged, 1u << 20);
    detected += code == ErrorCode::DataLoss || code == ErrorCode::ResourceExhausted;
    if (code == ErrorCode::Cancelled && zstd_decompress(damaged, 1u << 20) != bytes) {
      FAIL("bit " << bit << " passed unseen");
    }
  }
  CHECK(detected * 100 > 8 * frame.size() * 99);
}

TEST_CASE("a frame that is cut off or followed by bytes is data loss") {
  const std::string frame = zstd_compress(sample(5000));
  for (const std::size_t size : {std::size_t{0}, std::size_t{3}, frame.size() / 2, frame.size() - 1}) {
    CHECK(code_of(frame.substr(0, size), 1u << 20) == ErrorCode::DataLoss);
  }
  CHECK(code_of(frame + "x", 1u << 20) == ErrorCode::DataLoss);
  CHECK(code_of(frame_without_size(sample(5000)).substr(0, 100), 1u << 20) == ErrorCode::DataLoss);
  CHECK(code_of("no zstd at all", 1u << 20) == ErrorCode::DataLoss);
}

}  // namespace cubind
