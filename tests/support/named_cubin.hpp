// A small cubin: one function, its bytes and its name.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

namespace cubind::test {

/// Sections: an empty one, ".shstrtab", ".strtab", ".symtab" with the function, ".text." SYMBOL,
/// ".debug_line". `called`: a function of the driver's that it calls.
inline std::string named_cubin(const std::string& symbol, const std::string& code,
                               const std::string& debug = "", const std::string& called = "") {
  const auto number = [](auto value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  };
  std::string names("\0", 1), contents, headers(64, '\0');
  const auto add = [&](const std::string& name, std::uint32_t type, std::uint32_t link,
                       const std::string& content) {
    headers += number(static_cast<std::uint32_t>(names.size())) + number(type) + std::string(16, '\0') +
               number(std::uint64_t{64 + contents.size()}) + number(std::uint64_t{content.size()}) +
               number(link) + std::string(20, '\0');
    names += name + '\0';
    contents += content;
  };
  const std::string offset_of_name = number(std::uint32_t{1});
  const std::string function = offset_of_name + std::string{'\x12', '\x10'} + number(std::uint16_t{4}) +
                               number(std::uint64_t{0}) + number(std::uint64_t{code.size()});
  const std::string undefined =
      number(static_cast<std::uint32_t>(symbol.size() + 2)) + '\x12' + std::string(19, '\0');
  add(".strtab", 3, 0, '\0' + symbol + '\0' + called + '\0');
  add(".symtab", 2, 1, std::string(24, '\0') + function + (called.empty() ? "" : undefined));
  add(".text." + symbol, 1, 2, code);
  add(".debug_line", 1, 0, debug);
  add(".shstrtab", 3, 0, names + ".shstrtab" + '\0');
  std::string file(
      "\x7f"
      "ELF\x02\x01",
      6);
  file.resize(64, '\0');
  const auto put = [&](std::size_t at, const std::string& bytes) { file.replace(at, bytes.size(), bytes); };
  put(18, number(std::uint16_t{190}));
  put(40, number(std::uint64_t{64 + contents.size()}));
  put(58, number(std::uint16_t{64}));
  put(60, number(std::uint16_t{6}));
  put(62, number(std::uint16_t{5}));
  return file + contents + headers;
}

}  // namespace cubind::test
