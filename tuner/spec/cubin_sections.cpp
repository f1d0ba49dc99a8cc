#include "tuner/spec/cubin_sections.hpp"

#include <bit>

namespace cubind {
namespace {

static_assert(std::endian::native == std::endian::little, "cubins are read in their own byte order");

constexpr std::string_view kElf64 =
    "\x7f"
    "ELF\x02\x01";
constexpr std::uint16_t kCudaMachine = 190;
constexpr std::size_t kHeaderBytes = 64;
constexpr std::size_t kSectionBytes = 64;

std::string_view text_at(std::string_view texts, std::uint64_t offset) {
  const std::string_view rest = offset < texts.size() ? texts.substr(offset) : std::string_view{};
  return rest.substr(0, rest.find('\0'));
}

}  // namespace

std::optional<std::string_view> part(std::string_view bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) {
    return std::nullopt;
  }
  return bytes.substr(offset, size);
}

CubinSections::CubinSections(std::string_view cubin) : cubin_(cubin) {
  if (cubin.size() < kHeaderBytes || !cubin.starts_with(kElf64) ||
      number_at<std::uint16_t>(cubin, 18) != kCudaMachine ||
      number_at<std::uint16_t>(cubin, 58) != kSectionBytes) {
    return;
  }
  const std::uint64_t count = number_at<std::uint16_t>(cubin, 60);
  const auto headers = part(cubin, number_at<std::uint64_t>(cubin, 40), count * kSectionBytes);
  const std::uint64_t names = number_at<std::uint16_t>(cubin, 62);
  if (!headers || names >= count) {
    return;
  }
  headers_ = *headers;
  names_ = content(names).value_or(std::string_view{});
}

std::size_t CubinSections::count() const { return headers_.size() / kSectionBytes; }

std::string_view CubinSections::header(std::size_t index) const {
  return headers_.substr(index * kSectionBytes, kSectionBytes);
}

std::string_view CubinSections::name(std::size_t index) const {
  return text_at(names_, number_at<std::uint32_t>(header(index), 0));
}

std::optional<std::string_view> CubinSections::content(std::size_t index) const {
  return part(cubin_, number_at<std::uint64_t>(header(index), 24),
              number_at<std::uint64_t>(header(index), 32));
}

std::optional<std::size_t> CubinSections::symbols() const {
  for (std::size_t i = 0; i < count(); ++i) {
    if (type(i) == kSymbolTable) {
      return i;
    }
  }
  return std::nullopt;
}

std::string_view CubinSections::linked_text(std::size_t index, std::uint64_t offset) const {
  const auto link = number_at<std::uint32_t>(header(index), 40);
  return text_at(link < count() ? content(link).value_or(std::string_view{}) : std::string_view{}, offset);
}

}  // namespace cubind
