#include "tuner/includes/nvrtc_options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <span>

#include "base/identifier.hpp"
#include "base/refuse.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

enum class Values {
  None,          // a flag
  Boolean,       // true or false
  Dialect,       // c++17, c++20
  Registers,     // 16 to 255
  Percent,       // 0 to 101, of --jump-table-density
  Diagnostics,   // numbers, separated by commas
  PtxasOptions,  // one of a fixed list
};

struct AllowedOption {
  std::string_view name;   // canonical
  std::string_view alias;  // NVRTC's short spelling; empty: none
  Values values;
};

constexpr std::string_view kDefaultDevice = "--device-as-default-execution-space";

constexpr std::array kAllowed{
    AllowedOption{"--std", "-std", Values::Dialect},
    AllowedOption{"--use_fast_math", "-use_fast_math", Values::None},
    AllowedOption{"--fmad", "-fmad", Values::Boolean},
    AllowedOption{"--ftz", "-ftz", Values::Boolean},
    AllowedOption{"--prec-div", "-prec-div", Values::Boolean},
    AllowedOption{"--prec-sqrt", "-prec-sqrt", Values::Boolean},
    AllowedOption{"--maxrregcount", "-maxrregcount", Values::Registers},
    AllowedOption{"--extra-device-vectorization", "-extra-device-vectorization", Values::None},
    AllowedOption{"--generate-line-info", "-lineinfo", Values::None},
    AllowedOption{"--restrict", "-restrict", Values::None},
    AllowedOption{"--device-int128", "-device-int128", Values::None},
    AllowedOption{kDefaultDevice, "-default-device", Values::None},
    AllowedOption{"--minimal", "-minimal", Values::None},
    AllowedOption{"--jump-table-density", "-jtd", Values::Percent},
    AllowedOption{"--disable-warnings", "-w", Values::None},
    AllowedOption{"--diag-suppress", "-diag-suppress", Values::Diagnostics},
    AllowedOption{"--ptxas-options", "-Xptxas", Values::PtxasOptions},
};

constexpr std::array<std::string_view, 10> kPtxas{
    "-O0",      "-O1",      "-O2",      "-O3",
    "-dlcm=ca", "-dlcm=cg", "-dlcm=cv", "--allow-expensive-optimizations=true",
    "-dscm=wb", "-dscm=cg",
};
constexpr std::string_view kRegisterUsage = "--register-usage-level=";

std::string describe(const AllowedOption& option) {
  std::string name(option.name);
  switch (option.values) {
    case Values::None:
      return name;
    case Values::Boolean:
      return name + "=true|false";
    case Values::Dialect:
      return name + "=c++17|c++20";
    case Values::Registers:
      return name + "=16..255";
    case Values::Percent:
      return name + "=0..101";
    case Values::Diagnostics:
      return name + "=NUMBER,...";
    case Values::PtxasOptions:
      return name + "=" + join(kPtxas, "|") + "|" + std::string(kRegisterUsage) + "0..10";
  }
  return name;
}

std::string all_allowed() {
  std::vector<std::string> texts;
  for (const AllowedOption& option : kAllowed) {
    texts.push_back(describe(option));
  }
  return join(texts, ", ");
}

std::optional<long> number_in(std::string_view text, long low, long high) {
  long value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && stop == text.data() + text.size();
  return whole && value >= low && value <= high ? std::optional(value) : std::nullopt;
}

bool is_number_list(std::string_view text) {
  while (true) {
    const std::size_t comma = text.find(',');
    if (!number_in(text.substr(0, comma), 1, 99999)) {
      return false;
    }
    if (comma == std::string_view::npos) {
      return true;
    }
    text.remove_prefix(comma + 1);
  }
}

bool is_allowed_value(Values values, std::string_view value) {
  switch (values) {
    case Values::None:
      return false;
    case Values::Boolean:
      return value == "true" || value == "false";
    case Values::Dialect:
      return value == "c++17" || value == "c++20";
    case Values::Registers:
      return number_in(value, 16, 255).has_value();
    case Values::Percent:
      return number_in(value, 0, 101).has_value();
    case Values::Diagnostics:
      return is_number_list(value);
    case Values::PtxasOptions:
      return value.starts_with(kRegisterUsage)
                 ? number_in(value.substr(kRegisterUsage.size()), 0, 10).has_value()
                 : std::ranges::find(kPtxas, value) != kPtxas.end();
  }
  return false;
}

// nvcc's lets device code call constexpr functions of the host; NVRTC's makes all functions device code.
std::string_view of_nvrtc(std::string_view name) {
  return name == "--expt-relaxed-constexpr" ? kDefaultDevice : name;
}

// The reason why an option that people try is not on the list.
std::string_view reason(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kReasons{{
      {"--gpu-architecture", "cubind sets it; `arch_features` asks for the architecture with its suffix"},
      {"-arch", "cubind sets it; `arch_features` asks for the architecture with its suffix"},
      {"-D", "macros are listed under `defines`"},
      {"--define-macro", "macros are listed under `defines`"},
      {"-I", "folders are listed under `headers`"},
      {"--include-path", "folders are listed under `headers`"},
      {"-include", "the source must include its headers itself"},
      {"--pre-include", "the source must include its headers itself"},
      {"-G", "debug code cannot be timed"},
      {"--device-debug", "debug code cannot be timed"},
      {"-dlto", "the result must be a cubin"},
      {"--dlink-time-opt", "the result must be a cubin"},
      {"-dc", "the result must be a cubin"},
      {"--device-c", "the result must be a cubin"},
      {"-rdc", "the result must be a cubin"},
      {"--relocatable-device-code", "the result must be a cubin"},
  }};
  const auto found = std::ranges::find_if(kReasons, [&](const auto& entry) {
    return entry.first == name || (entry.first.size() == 2 && name.starts_with(entry.first));
  });
  return found == kReasons.end() ? std::string_view{} : found->second;
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

// The name of a canonical option; options with the same name exclude each other. -O, -dlcm, ... are options
// of their own.
std::string exclusive_name(const std::string& canonical) {
  constexpr std::string_view kPtxasPrefix = "--ptxas-options=";
  if (!canonical.starts_with(kPtxasPrefix)) {
    return canonical.substr(0, canonical.find('='));
  }
  const std::string rest = canonical.substr(kPtxasPrefix.size());
  return std::string(kPtxasPrefix) + (rest.starts_with("-O") ? "-O" : rest.substr(0, rest.find('=')));
}

}  // namespace

std::string canonical_nvrtc_option(std::string_view option, std::string_view where) {
  const std::size_t equals = option.find('=');
  const std::string_view name = of_nvrtc(option.substr(0, equals));
  const auto allowed = std::ranges::find_if(
      kAllowed, [&](const AllowedOption& entry) { return entry.name == name || entry.alias == name; });
  if (allowed == kAllowed.end()) {
    const std::string_view why = reason(name);
    refuse(where, "the option " + quoted(option) + " is not allowed" +
                      (why.empty() ? "" : " (" + std::string(why) + ")") + "; allowed are " + all_allowed());
  }
  if (equals == std::string_view::npos && allowed->values == Values::None) {
    return std::string(allowed->name);
  }
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view{} : option.substr(equals + 1);
  if (!is_allowed_value(allowed->values, value)) {
    refuse(where, "the option " + quoted(option) + " must be " + describe(*allowed));
  }
  return std::string(allowed->name) + "=" + std::string(value);
}

std::vector<std::string> canonical_nvrtc_options(const std::vector<std::string>& options,
                                                 std::string_view where) {
  std::map<std::string, std::string> by_name;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const std::string here = std::string(where) + "/" + std::to_string(i);
    const std::string canonical = canonical_nvrtc_option(options[i], here);
    const auto [entry, fresh] = by_name.emplace(exclusive_name(canonical), canonical);
    if (!fresh && entry->second != canonical) {
      refuse(here, "the option " + quoted(canonical) + " contradicts " + quoted(entry->second));
    }
  }
  std::vector<std::string> result;
  for (const auto& [name, canonical] : by_name) {
    result.push_back(canonical);
  }
  std::ranges::sort(result);
  return result;
}

std::vector<std::string> nvcc_defines(const std::vector<std::string>& options) {
  return std::ranges::find(options, kDefaultDevice) == options.end()
             ? std::vector<std::string>{}
             : std::vector<std::string>{"__CUDACC_RELAXED_CONSTEXPR__=1"};
}

void check_nvrtc_define(std::string_view define, std::string_view where) {
  const std::size_t equals = define.find('=');
  if (!is_identifier(define.substr(0, equals))) {
    refuse(where, "the macro definition " + quoted(define) +
                      " must be NAME or NAME=VALUE with an identifier as NAME");
  }
  if (!is_printable(define) || define.find('\\') != std::string_view::npos) {
    refuse(where, "the macro definition " + quoted(define) +
                      " must be one line of printable ASCII without a backslash");
  }
}

void check_name_expression(std::string_view expression, std::string_view where) {
  const bool comments =
      expression.find("/*") != std::string_view::npos || expression.find("//") != std::string_view::npos;
  if (expression.empty() || comments || !is_printable(expression) ||
      expression.find_first_of("#\";\\") != std::string_view::npos) {
    refuse(where,
           "the entry " + quoted(expression) +
               " must be a name expression such as kernel<float, 4>: one line of printable ASCII without "
               "double quotes, semicolons, #, backslashes and comments");
  }
}

void check_architecture(std::string_view architecture, std::string_view where) {
  std::string_view digits = architecture;
  bool good = digits.starts_with("sm_");
  digits.remove_prefix(good ? 3 : 0);
  if (digits.ends_with('a') || digits.ends_with('f')) {
    digits.remove_suffix(1);
  }
  good = good && digits.size() >= 2 && number_in(digits, 50, 999).has_value();
  if (!good) {
    refuse(where,
           "the architecture " + quoted(architecture) + " must be a real one, such as sm_90 or sm_90a");
  }
}

}  // namespace cubind
