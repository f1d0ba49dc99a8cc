#include "tuner/worker/compile_ptx.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "base/identifier.hpp"
#include "base/text.hpp"

namespace cubind::worker {
namespace {

struct PtxFunction {
  bool entry = false;
  bool matrix = false;
  std::set<std::string> words;  // names that may be callees
};

bool is_of_symbol(char c) { return is_letter(c) || is_digit(c) || c == '$'; }

// The symbol that a ".entry" or ".func" line defines: the first name that is not within the parentheses of a
// return value.
std::string defined_symbol(std::string_view rest) {
  rest = trimmed(rest);
  if (rest.starts_with('(')) {
    const std::size_t close = rest.find(')');
    rest = close == std::string_view::npos ? std::string_view{} : trimmed(rest.substr(close + 1));
  }
  const auto end = std::ranges::find_if_not(rest, is_of_symbol);
  return std::string(rest.begin(), end);
}

bool is_matrix_instruction(std::string_view line) {
  // The guard of a predicated instruction: "@%p1 mma.sync...".
  if (line.starts_with('@')) {
    const std::size_t blank = line.find_first_of(" \t");
    line = blank == std::string_view::npos ? std::string_view{} : trimmed(line.substr(blank));
  }
  constexpr std::array<std::string_view, 5> kMatrix = {"mma.sync", "mma.sp", "wmma.mma", "wgmma.mma_async",
                                                       "tcgen05.mma"};
  return std::ranges::any_of(kMatrix,
                             [&](std::string_view instruction) { return line.starts_with(instruction); });
}

// Inline assembly puts several instructions on a line: "{ .reg .b32 t; mma.sync...; }".
bool holds_matrix_instruction(std::string_view line) {
  while (!line.empty()) {
    const std::size_t end = line.find_first_of(";{}");
    if (is_matrix_instruction(trimmed(line.substr(0, end)))) {
      return true;
    }
    line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  }
  return false;
}

void add_words(std::string_view line, std::set<std::string>& words) {
  for (auto at = line.begin(); at != line.end();) {
    const auto begin = std::ranges::find_if(at, line.end(), is_of_symbol);
    at = std::ranges::find_if_not(begin, line.end(), is_of_symbol);
    if (begin != at) {
      words.emplace(begin, at);
    }
  }
}

std::map<std::string, PtxFunction> read_functions(std::string_view ptx) {
  std::map<std::string, PtxFunction> functions;
  PtxFunction* current = nullptr;
  bool in_call = false;  // of an instruction that goes over several lines
  while (!ptx.empty()) {
    const std::size_t end = ptx.find('\n');
    const std::string_view line = trimmed(ptx.substr(0, end));
    ptx.remove_prefix(end == std::string_view::npos ? ptx.size() : end + 1);
    const std::size_t entry = line.starts_with('.') ? line.find(".entry ") : std::string_view::npos;
    const std::size_t function = line.starts_with('.') ? line.find(".func ") : std::string_view::npos;
    if (entry != std::string_view::npos || function != std::string_view::npos) {
      const bool is_entry = entry != std::string_view::npos;
      current = &functions[defined_symbol(line.substr(is_entry ? entry + 7 : function + 6))];
      current->entry = current->entry || is_entry;
    } else if (current != nullptr) {
      current->matrix = current->matrix || holds_matrix_instruction(line);
      in_call = in_call || line.find("call") != std::string_view::npos;
      if (in_call) {
        add_words(line, current->words);
        in_call = line.find(';') == std::string_view::npos;
      }
    }
  }
  return functions;
}

bool reaches_matrix(const std::string& from, const std::map<std::string, PtxFunction>& functions) {
  std::vector<std::string> open{from};
  std::set<std::string> seen{from};
  while (!open.empty()) {
    const PtxFunction& function = functions.at(open.back());
    open.pop_back();
    if (function.matrix) {
      return true;
    }
    for (const std::string& word : function.words) {
      if (functions.contains(word) && seen.insert(word).second) {
        open.push_back(word);
      }
    }
  }
  return false;
}

}  // namespace

PtxKernels read_ptx(std::string_view ptx) {
  const std::map<std::string, PtxFunction> functions = read_functions(ptx);
  PtxKernels kernels;
  for (const auto& [name, function] : functions) {
    if (function.entry) {
      kernels.entries.insert(name);
      if (reaches_matrix(name, functions)) {
        kernels.with_tensor_cores.insert(name);
      }
    }
  }
  return kernels;
}

}  // namespace cubind::worker
