#include "tuner/worker/unset_variables.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/identifier.hpp"
#include "base/text.hpp"
#include "tuner/includes/header_prefix.hpp"

namespace cubind::worker {
namespace {

bool is_of_name(char c) { return is_letter(c) || is_digit(c); }

// "s" would be "short": a name that is not mangled is a type's to the demangler.
std::string demangled(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) {
    return symbol;
  }
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text ? std::string(text.get()) : symbol;
}

// "d_filter" of "ns::d_filter<float>".
std::string identifier_of(const std::string& name) {
  const std::string plain = name.substr(0, name.find('<'));
  const std::size_t scope = plain.rfind("::");
  return scope == std::string::npos ? plain : plain.substr(scope + 2);
}

// Those of a function's static variables begin with _ZZ. NVRTC gives its own a $: texts are $str, zeros that
// a kernel copies are KERNEL$1.
bool can_be_set(const std::string& symbol) {
  return !symbol.starts_with("_ZZ") && symbol.find('$') == std::string::npos;
}

// What stands before the name, from the end of the statement before; empty within parentheses: a parameter.
std::string_view specifiers(std::string_view before) {
  const std::size_t end = before.find_last_of(";{}");
  const std::string_view text = end == std::string_view::npos ? before : before.substr(end + 1);
  return std::ranges::count(text, '(') == std::ranges::count(text, ')') ? text : std::string_view{};
}

// "[2][3] = {": what stands behind the name begins an initializer.
bool begins_initializer(std::string_view after) {
  after = trimmed(after);
  while (after.starts_with('[')) {
    const std::size_t close = after.find(']');
    after = close == std::string_view::npos ? std::string_view{} : trimmed(after.substr(close + 1));
  }
  return after.starts_with('{') || (after.starts_with('=') && !after.starts_with("=="));
}

bool is_initialized(const std::string& name, bool is_constant, const v1::CompileRequest& request) {
  const std::string identifier = identifier_of(name);
  return declares_initialized(request.source(), identifier, is_constant) ||
         std::ranges::any_of(request.headers(), [&](const v1::SourceFile& header) {
           return declares_initialized(header.content(), identifier, is_constant);
         });
}

// An element type of the variable's alignment: the reader corrects it.
std::string example(const std::string& name, const PtxVariable& variable) {
  const std::string type = variable.align == 1   ? "u8"
                           : variable.align == 2 ? "f16"
                           : variable.align == 8 ? "f64"
                                                 : "f32";
  const std::uint64_t size = std::max<std::uint64_t>(1, variable.align == 16 ? 4 : variable.align);
  const auto line = [&](const std::string& role) {
    return "\"" + identifier_of(name) + "\": {\"buffer\": \"" + type + "\", \"extent\": \"" +
           std::to_string(std::max<std::uint64_t>(1, variable.bytes / size)) + "\", \"role\": \"" + role +
           "\", \"symbol\": \"" + name + "\"}";
  };
  const std::string input =
      "Add its content to the arguments and to those of each launch that reads it: " + line("in");
  return variable.is_constant
             ? input
             : input + "; or, if only kernels write to it and zeros are its right start: " + line("scratch");
}

}  // namespace

std::string variable_name(const std::string& symbol) {
  std::string name = demangled(symbol);
  for (const char* unnamed : {"_INTERNAL_", "_GLOBAL__N__", "(anonymous namespace)"}) {
    for (std::size_t at = 0; (at = name.find(unnamed)) != std::string::npos;) {
      const std::size_t end = name.find("::", at);
      name.erase(at, end == std::string::npos ? std::string::npos : end + 2 - at);
    }
  }
  return name;
}

bool declares_initialized(std::string_view text, std::string_view name, bool is_constant) {
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool is_whole =
        (at == 0 || !is_of_name(text[at - 1])) && end < text.size() && !is_of_name(text[end]);
    if (!is_whole || !begins_initializer(text.substr(end))) {
      continue;
    }
    const std::string_view before = specifiers(text.substr(0, at));
    const bool is_const = has_word(before, "const") || has_word(before, "constexpr");
    if (is_const || (!is_constant && has_word(before, "__device__"))) {
      return true;
    }
  }
  return false;
}

std::string unset_variables(const PtxModule& module, const PtxKernel& kernel,
                            const std::set<std::string>& set, const v1::CompileRequest& request) {
  std::string text;
  for (const std::string& symbol : kernel.variables) {
    const PtxVariable& variable = module.variables.at(symbol);
    const std::string name = variable_name(symbol);
    if (!variable.is_zeroed || variable.is_empty || set.contains(symbol) || !can_be_set(symbol) ||
        is_initialized(name, variable.is_constant, request)) {
      continue;
    }
    text += (text.empty() ? "" : "\n") + std::string("the ") +
            (variable.is_constant ? "__constant__" : "__device__") + " variable " + name +
            " is read and nothing sets it: the kernel would be verified on zeros. " + example(name, variable);
  }
  return text;
}

}  // namespace cubind::worker
