#include "base/zstd.hpp"

#include <zstd.h>

#include <algorithm>
#include <memory>

#include "base/error.hpp"

namespace cubind {
namespace {

constexpr char kZstd[] = "zstd";

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

std::size_t checked(std::size_t result, ErrorCode code) {
  if (ZSTD_isError(result) != 0) {
    throw Error(code, kZstd, ZSTD_getErrorName(result));
  }
  return result;
}

[[noreturn]] void fail_too_long(std::size_t max_bytes) {
  throw Error(ErrorCode::ResourceExhausted, kZstd,
              "the content is longer than " + std::to_string(max_bytes) + " bytes");
}

}  // namespace

std::string zstd_compress(std::string_view bytes, int level) {
  const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  checked(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level), ErrorCode::Internal);
  checked(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1), ErrorCode::Internal);
  std::string frame(ZSTD_compressBound(bytes.size()), '\0');
  frame.resize(checked(ZSTD_compress2(context.get(), frame.data(), frame.size(), bytes.data(), bytes.size()),
                       ErrorCode::Internal));
  return frame;
}

std::optional<std::uint64_t> zstd_content_size(std::string_view frame) {
  const unsigned long long size = ZSTD_getFrameContentSize(frame.data(), frame.size());
  const bool is_known = size != ZSTD_CONTENTSIZE_ERROR && size != ZSTD_CONTENTSIZE_UNKNOWN;
  return is_known ? std::optional<std::uint64_t>(size) : std::nullopt;
}

std::string zstd_decompress(std::string_view frame, std::size_t max_bytes) {
  const unsigned long long claimed = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (claimed == ZSTD_CONTENTSIZE_ERROR) {
    throw Error(ErrorCode::DataLoss, kZstd, "not a zstd frame");
  }
  const bool known = claimed != ZSTD_CONTENTSIZE_UNKNOWN;
  if (known && claimed > max_bytes) {
    fail_too_long(max_bytes);
  }
  const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  // The window of a hostile frame may be gigabytes although its content is small.
  checked(ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, 27), ErrorCode::Internal);
  std::string content(known ? static_cast<std::size_t>(claimed) : std::min<std::size_t>(max_bytes, 64u << 10),
                      '\0');
  ZSTD_inBuffer in{frame.data(), frame.size(), 0};
  ZSTD_outBuffer out{content.data(), content.size(), 0};
  while (checked(ZSTD_decompressStream(context.get(), &out, &in), ErrorCode::DataLoss) != 0) {
    if (out.pos < out.size) {
      if (in.pos == in.size) {
        throw Error(ErrorCode::DataLoss, kZstd, "the frame is cut off");
      }
    } else if (content.size() < max_bytes && !known) {
      content.resize(std::min(max_bytes, content.size() * 2));
      out.dst = content.data();
      out.size = content.size();
    } else if (in.pos == in.size) {
      throw Error(ErrorCode::DataLoss, kZstd, "the frame is cut off");
    } else if (out.pos == max_bytes && !known) {
      fail_too_long(max_bytes);
    }
  }
  if (in.pos != in.size) {
    throw Error(ErrorCode::DataLoss, kZstd, "bytes follow the frame");
  }
  content.resize(out.pos);
  return content;
}

}  // namespace cubind
