// Writes ELF files with the sections that read_cubin_entries() looks for, right and wrong ones.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace cubind::test {

template <typename Number>
std::string bytes_of_number(Number value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// ---- Attributes of an entry's section ----

inline std::string attribute(std::uint8_t number, const std::string& content) {
  return std::string{'\x04', static_cast<char>(number)} +
         bytes_of_number(static_cast<std::uint16_t>(content.size())) + content;
}

inline std::string parameter(std::uint16_t position, std::uint16_t offset, std::uint32_t bytes) {
  return attribute(0x17, bytes_of_number(std::uint32_t{0}) + bytes_of_number(position) +
                             bytes_of_number(offset) + bytes_of_number(bytes << 18 | 0x1f000u));
}

inline std::string all_bytes(std::uint16_t bytes) { return "\x03\x19" + bytes_of_number(bytes); }

inline std::string extents(std::uint8_t number, std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  return attribute(number, bytes_of_number(x) + bytes_of_number(y) + bytes_of_number(z));
}

inline std::string mark(std::uint8_t number) {
  return std::string{'\x01', static_cast<char>(number), '\0', '\0'};
}

// ---- The file ----

/// Sections: an empty one, the names, then ".nv.info." SYMBOL for each entry.
inline std::string make_cubin(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string names("\0.shstrtab\0", 11), contents, headers(64, '\0');
  const auto add = [&](std::size_t name, std::size_t offset, std::size_t size) {
    headers += bytes_of_number(static_cast<std::uint32_t>(name)) + std::string(20, '\0') +
               bytes_of_number(std::uint64_t{offset}) + bytes_of_number(std::uint64_t{size}) +
               std::string(24, '\0');
  };
  std::vector<std::size_t> offsets;
  for (const auto& [symbol, content] : entries) {
    offsets.push_back(names.size());
    names += ".nv.info." + symbol + '\0';
  }
  add(1, 64, names.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    add(offsets[i], 64 + names.size() + contents.size(), entries[i].second.size());
    contents += entries[i].second;
  }
  std::string file(
      "\x7f"
      "ELF\x02\x01",
      6);
  file += std::string(12, '\0') + bytes_of_number(std::uint16_t{190}) + std::string(20, '\0') +
          bytes_of_number(std::uint64_t{64 + names.size() + contents.size()}) + std::string(10, '\0') +
          bytes_of_number(std::uint16_t{64}) +
          bytes_of_number(static_cast<std::uint16_t>(entries.size() + 2)) + bytes_of_number(std::uint16_t{1});
  return file + names + contents + headers;
}

}  // namespace cubind::test
