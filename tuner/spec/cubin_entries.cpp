#include "tuner/spec/cubin_entries.hpp"

#include <algorithm>
#include <cstddef>

#include "tuner/spec/cubin_sections.hpp"

namespace cubind {
namespace {

constexpr std::string_view kEntrySection = ".nv.info.";
constexpr std::uint8_t kObject = 1;

struct CubinParameter {
  std::uint32_t position = 0, offset = 0, bytes = 0;
};

/// Collects the attributes of an entry.
class EntryReader {
 public:
  /// False: the attribute is known and its value is not.
  bool take(std::uint8_t number, std::uint16_t value, std::string_view content) {
    switch (number) {
      case 0x17:
      case 0x45:
        return take_parameter(number == 0x45, content);
      case 0x19:
        all_bytes_ = value;
        return true;
      case 0x05:
        return take_max_threads(content);
      case 0x10:
        return take(content, entry_.block);
      case 0x3d:
        return take(content, entry_.cluster);
      case 0x3e:
        is_in_clusters_ = true;
        return true;
      case 0x5b:
        entry_.grid_counts_clusters = true;
        return true;
      default:
        return true;
    }
  }

  CubinEntry entry() {
    entry_.parameter_bytes = parameter_bytes();
    entry_.wants_launch_clusters = is_in_clusters_ && !entry_.cluster;
    return std::move(entry_);
  }

 private:
  static bool take(std::string_view content, std::optional<Dim3>& extents) {
    if (content.size() != 12) {
      return false;
    }
    extents = {number_at<std::uint32_t>(content, 0), number_at<std::uint32_t>(content, 4),
               number_at<std::uint32_t>(content, 8)};
    return extents->x > 0 && extents->y > 0 && extents->z > 0;
  }

  bool take_max_threads(std::string_view content) {
    std::optional<Dim3> extents;
    if (!take(content, extents) || std::max({extents->x, extents->y, extents->z}) > kMaxThreadsPerBlock) {
      return false;
    }
    entry_.max_threads = std::uint64_t{extents->x} * extents->y * extents->z;
    return true;
  }

  bool take_parameter(bool is_large, std::string_view content) {
    if (content.size() != 12) {
      return false;
    }
    const auto word = number_at<std::uint32_t>(content, 8);
    parameters_.push_back({number_at<std::uint16_t>(content, 4), number_at<std::uint16_t>(content, 6),
                           is_large ? word & 0xffff : word >> 18});
    return true;
  }

  // A number that a later compiler writes for another kind of parameter would leave a gap.
  std::optional<std::vector<std::uint32_t>> parameter_bytes() {
    std::ranges::sort(parameters_, {}, &CubinParameter::position);
    std::vector<std::uint32_t> bytes;
    std::uint32_t end = 0;
    for (const CubinParameter& parameter : parameters_) {
      if (parameter.position != bytes.size() || parameter.offset < end || parameter.bytes == 0) {
        return std::nullopt;
      }
      bytes.push_back(parameter.bytes);
      end = parameter.offset + parameter.bytes;
    }
    return end == all_bytes_ ? std::optional(std::move(bytes)) : std::nullopt;
  }

  CubinEntry entry_;
  std::vector<CubinParameter> parameters_;
  std::uint32_t all_bytes_ = 0;
  bool is_in_clusters_ = false;
};

std::optional<CubinEntry> read_entry(std::string_view section) {
  EntryReader reader;
  for (std::size_t at = 0; at < section.size();) {
    const auto attribute = part(section, at, 4);
    if (!attribute) {
      return std::nullopt;
    }
    const auto format = static_cast<std::uint8_t>((*attribute)[0]);
    const auto number = static_cast<std::uint8_t>((*attribute)[1]);
    const auto value = number_at<std::uint16_t>(*attribute, 2);
    const auto content = part(section, at + 4, format == 4 ? value : 0);
    if (format == 0 || format > 4 || !content || !reader.take(number, value, *content)) {
      return std::nullopt;
    }
    at += 4 + content->size();
  }
  return reader.entry();
}

}  // namespace

CubinEntries read_cubin_entries(std::string_view cubin) {
  CubinEntries entries;
  const CubinSections sections(cubin);
  for (std::size_t i = 0; i < sections.count(); ++i) {
    const std::string_view name = sections.name(i);
    const auto content = sections.content(i);
    if (!name.starts_with(kEntrySection) || !content) {
      continue;
    }
    if (const auto entry = read_entry(*content)) {
      entries.insert_or_assign(std::string(name.substr(kEntrySection.size())), *entry);
    }
  }
  return entries;
}

namespace {

struct Symbol {
  std::string_view name;
  std::uint8_t info = 0;
  std::uint16_t section = 0;
  std::uint64_t bytes = 0;
};

std::vector<Symbol> read_symbols(const CubinSections& sections) {
  const auto table = sections.symbols();
  const std::string_view bytes = table ? sections.content(*table).value_or("") : "";
  std::vector<Symbol> symbols;
  for (std::size_t at = 0; at + CubinSections::kSymbolBytes <= bytes.size();
       at += CubinSections::kSymbolBytes) {
    symbols.push_back({sections.linked_text(*table, number_at<std::uint32_t>(bytes, at)),
                       number_at<std::uint8_t>(bytes, at + 4), number_at<std::uint16_t>(bytes, at + 6),
                       number_at<std::uint64_t>(bytes, at + 16)});
  }
  return symbols;
}

/// Calls `take` with name, bytes and section of each variable.
template <typename Take>
void read_variables(std::string_view cubin, Take take) {
  const CubinSections sections(cubin);
  for (const Symbol& symbol : read_symbols(sections)) {
    if ((symbol.info & 0xf) == kObject && !symbol.name.empty()) {
      take(std::string(symbol.name), symbol.bytes,
           symbol.section < sections.count() ? sections.name(symbol.section) : "");
    }
  }
}

}  // namespace

CubinVariables read_cubin_variables(std::string_view cubin) {
  CubinVariables variables;
  read_variables(cubin, [&](std::string name, std::uint64_t bytes, std::string_view /*section*/) {
    variables.insert_or_assign(std::move(name), bytes);
  });
  return variables;
}

std::vector<std::string> changeable_variables(std::string_view cubin) {
  std::vector<std::string> changeable;
  read_variables(cubin, [&](std::string name, std::uint64_t bytes, std::string_view section) {
    if (bytes > 0 && section.starts_with(".nv.global")) {
      changeable.push_back(std::move(name));
    }
  });
  return changeable;
}

bool calls_driver(std::string_view cubin, std::string_view function) {
  const std::vector<Symbol> symbols = read_symbols(CubinSections(cubin));
  return std::ranges::any_of(symbols,
                             [&](const Symbol& one) { return one.name == function && one.section == 0; });
}

}  // namespace cubind
