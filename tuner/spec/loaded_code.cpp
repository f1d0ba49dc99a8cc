#include "tuner/spec/loaded_code.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "base/key_encoder.hpp"
#include "tuner/spec/cubin_sections.hpp"

namespace cubind {
namespace {

constexpr std::uint32_t kStringTable = 3, kNote = 7, kWithoutBytes = 8;
constexpr std::uint32_t kOtherSymbolTable = 0x70000085;  // ".nv.merc.symtab", from sm_100 on
constexpr std::size_t kFlagsAt = 48;                     // of the file's header: architecture and ABI

using SymbolNumbers = std::map<std::string_view, std::uint64_t>;

SymbolNumbers numbers_of_symbols(const CubinSections& sections, std::size_t table, std::string_view symbols) {
  SymbolNumbers numbers;
  for (std::size_t i = 0; (i + 1) * CubinSections::kSymbolBytes <= symbols.size(); ++i) {
    const auto name = number_at<std::uint32_t>(symbols, i * CubinSections::kSymbolBytes);
    numbers.emplace(sections.linked_text(table, name), i);
  }
  return numbers;
}

/// ".nv.constant0" of ".nv.constant0.SYMBOL".
std::string_view without_symbol(std::string_view name, const SymbolNumbers& symbols) {
  for (std::size_t dot = name.find('.', 1); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    if (symbols.contains(name.substr(dot + 1))) {
      return name.substr(0, dot);
    }
  }
  return name;
}

bool has_symbols(std::uint32_t type) {
  return type == CubinSections::kSymbolTable || type == kOtherSymbolTable;
}

bool is_loaded(std::uint32_t type, std::string_view name) {
  const auto is_debug = [name](std::string_view prefix) { return name.starts_with(prefix); };
  return type != kStringTable && type != kNote && !is_debug(".debug") && !is_debug(".nv_debug") &&
         !is_debug(".rel.debug") && !is_debug(".rela.debug");
}

std::string nameless(std::string_view symbols) {
  std::string bytes(symbols);
  for (std::size_t at = 0; at + CubinSections::kSymbolBytes <= bytes.size();
       at += CubinSections::kSymbolBytes) {
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), sizeof(std::uint32_t), '\0');
  }
  return bytes;
}

}  // namespace

NamelessLaunch without_names(LaunchPlan plan, std::vector<EntryResources> resources) {
  for (Launch& launch : plan.launches) {
    launch.entry.clear();
    launch.entry_symbol.clear();
    for (Parameter& parameter : launch.parameters) {
      parameter.variable.clear();
      parameter.symbol.clear();
    }
  }
  for (EntryResources& entry : resources) {
    entry.clear_entry_symbol();
  }
  return {std::move(plan), std::move(resources)};
}

std::optional<Digest> loaded_code(std::string_view cubin, const std::vector<std::string>& entries) {
  const CubinSections sections(cubin);
  const auto table = sections.symbols();
  const auto symbols = table ? sections.content(*table) : std::nullopt;
  if (!symbols) {
    return std::nullopt;
  }
  const SymbolNumbers numbers = numbers_of_symbols(sections, *table, *symbols);
  KeyEncoder key("loaded_code", 1);
  key.field("flags", number_at<std::uint32_t>(cubin, kFlagsAt));
  for (const std::string& entry : entries) {
    const auto number = numbers.find(entry);
    if (number == numbers.end()) {
      return std::nullopt;
    }
    key.field("entry", number->second);
  }
  for (std::size_t i = 0; i < sections.count(); ++i) {
    const std::string_view kind = without_symbol(sections.name(i), numbers);
    if (!is_loaded(sections.type(i), kind)) {
      continue;
    }
    const auto content = sections.type(i) == kWithoutBytes ? std::string_view{} : sections.content(i);
    if (!content) {
      return std::nullopt;
    }
    // Of the header all but the places of name and content.
    const std::string_view header = sections.header(i);
    key.begin("section")
        .field("kind", kind)
        .field("header", std::string(header.substr(4, 20)) + std::string(header.substr(32)))
        .field("content",
               Digest::of(has_symbols(sections.type(i)) ? nameless(*content) : std::string(*content)))
        .end();
  }
  return key.digest();
}

}  // namespace cubind
