// The container of a cubin: ELF64, little-endian, machine 190.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace cubind {

/// The number at an offset that lies within the bytes.
template <typename Number>
Number number_at(std::string_view bytes, std::size_t at) {
  Number value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// Absent: it reaches beyond the bytes.
std::optional<std::string_view> part(std::string_view bytes, std::uint64_t offset, std::uint64_t size);

/// The sections of a cubin with their names; none for bytes that are not a cubin's. The bytes must outlive
/// it.
class CubinSections {
 public:
  static constexpr std::size_t kSymbolBytes = 24;  // in the content of a section of type kSymbolTable
  static constexpr std::uint32_t kSymbolTable = 2;

  explicit CubinSections(std::string_view cubin);

  std::size_t count() const;
  std::string_view name(std::size_t index) const;
  /// Its 64 bytes in the table of sections.
  std::string_view header(std::size_t index) const;
  std::uint32_t type(std::size_t index) const { return number_at<std::uint32_t>(header(index), 4); }
  std::optional<std::string_view> content(std::size_t index) const;
  /// Of the symbol table; absent: the file has none.
  std::optional<std::size_t> symbols() const;
  /// The text at `offset` of the string table that the section names.
  std::string_view linked_text(std::size_t index, std::uint64_t offset) const;

 private:
  std::string_view cubin_, headers_, names_;
};

}  // namespace cubind
