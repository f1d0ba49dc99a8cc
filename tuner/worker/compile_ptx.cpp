#include "tuner/worker/compile_ptx.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>
#include <unordered_set>

#include "base/identifier.hpp"
#include "base/text.hpp"
#include "tuner/worker/parameter_uses.hpp"

namespace cubind::worker {
namespace {

using View = std::string_view;

bool is_of_symbol(char c) { return is_letter(c) || is_digit(c) || c == '$'; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }

View next_line(View& text) {
  const std::size_t end = text.find('\n');
  const View line = trimmed(text.substr(0, end));
  text.remove_prefix(end == View::npos ? text.size() : end + 1);
  return line;
}

// The first symbol that is not within the parentheses of a return value.
View defined_symbol(View rest) {
  rest = trimmed(rest);
  if (rest.starts_with('(')) {
    const std::size_t close = rest.find(')');
    rest = close == View::npos ? View{} : trimmed(rest.substr(close + 1));
  }
  const auto end = std::ranges::find_if_not(rest, is_of_symbol);
  return rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
}

struct Header {
  View symbol;
  bool is_entry = false;
};

// ".visible .entry NAME(", ".func (.param .b32 r) NAME("; without a symbol: another line.
Header header_of(View line) {
  if (!line.starts_with('.')) {
    return {};
  }
  if (const std::size_t entry = line.find(".entry "); entry != View::npos) {
    return {defined_symbol(line.substr(entry + 7)), true};
  }
  const std::size_t function = line.find(".func ");
  return {function == View::npos ? View{} : defined_symbol(line.substr(function + 6)), false};
}

std::uint64_t number_in(View text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// ".u32" has 4 bytes.
std::uint64_t element_bytes(View type) {
  const std::size_t digits = type.find_first_of("0123456789");
  return digits == View::npos ? 0 : number_in(type.substr(digits)) / 8;
}

struct Declaration {
  View symbol, initializer;
  PtxVariable variable;
};

// ".visible .const .align 4 .b8 NAME[36] = {0, 0, 128, 63};"; without a symbol: another line.
Declaration declaration_of(View line) {
  constexpr std::array<View, 3> kLinkages = {".visible ", ".extern ", ".weak "};
  for (const View linkage : kLinkages) {
    line = line.starts_with(linkage) ? trimmed(line.substr(linkage.size())) : line;
  }
  Declaration made;
  made.variable.is_constant = line.starts_with(".const ");
  if (!made.variable.is_constant && !line.starts_with(".global ")) {
    return {};
  }
  const std::size_t equals = line.find('=');
  made.variable.is_zeroed = equals == View::npos;
  made.initializer = made.variable.is_zeroed ? View{} : line.substr(equals + 1);
  const View left = trimmed(line.substr(0, std::min(equals, line.find(';'))));
  const View named = trimmed(left.substr(0, left.find('[')));
  const auto blank = std::find_if(named.rbegin(), named.rend(), is_blank);
  made.symbol = named.substr(static_cast<std::size_t>(named.rend() - blank));
  const View typed = trimmed(named.substr(0, named.size() - made.symbol.size()));
  const View type = typed.substr(typed.find_last_of(" \t") + 1);
  const std::size_t open = left.find('[');
  const std::uint64_t elements = open == View::npos ? 1 : number_in(left.substr(open + 1));
  made.variable.bytes = elements * element_bytes(type);
  made.variable.is_empty = open != View::npos && made.variable.bytes == 1;
  const std::size_t align = typed.find(".align ");
  made.variable.align = static_cast<std::uint32_t>(align == View::npos ? element_bytes(type)
                                                                       : number_in(typed.substr(align + 7)));
  return made;
}

bool begins_with_any(View instruction, std::initializer_list<View> mnemonics) {
  return std::ranges::any_of(mnemonics, [&](View one) { return instruction.starts_with(one); });
}

// The guard of a predicated instruction: "@%p1 mma.sync...".
View without_guard(View instruction) {
  if (!instruction.starts_with('@')) {
    return instruction;
  }
  const std::size_t blank = instruction.find_first_of(" \t");
  return blank == View::npos ? View{} : trimmed(instruction.substr(blank));
}

/// A function, or a variable with what its initializer names.
struct Node {
  bool is_entry = false, matrix = false;
  View texture, body;
  std::unordered_set<View> uses;  // names of nodes
};

class Reader {
 public:
  explicit Reader(View ptx) {
    for (View rest = ptx; !rest.empty();) {
      declare(next_line(rest));
    }
    Node* function = nullptr;
    for (View rest = ptx; !rest.empty();) {
      const View line = next_line(rest);
      if (const Header header = header_of(line); !header.symbol.empty()) {
        function = &nodes_[header.symbol];
        function->body = rest;
      } else if (line.starts_with(".section") || !declaration_of(line).symbol.empty()) {
        function = nullptr;  // what debuggers read, and the module's variables, also behind a prototype
      } else if (function != nullptr) {
        read(line, *function);
        function->body = {function->body.data(),
                          static_cast<std::size_t>(rest.data() - function->body.data())};
      }
    }
    for (const auto& [node, initializer] : initializers_) {
      add_uses(initializer, *node);
    }
  }

  PtxModule module() && {
    for (const auto& [symbol, node] : nodes_) {
      if (node.is_entry) {
        module_.kernels.emplace(symbol, reached(symbol));
      }
    }
    return std::move(module_);
  }

 private:
  void declare(View line) {
    if (const Header header = header_of(line); !header.symbol.empty()) {
      Node& node = nodes_[header.symbol];
      node.is_entry = node.is_entry || header.is_entry;
    } else if (const Declaration found = declaration_of(line); !found.symbol.empty()) {
      module_.variables.emplace(found.symbol, found.variable);
      initializers_.emplace_back(&nodes_[found.symbol], found.initializer);
    }
  }

  // Inline assembly puts several instructions on a line: "{ .reg .b32 t; mma.sync...; }".
  void read(View line, Node& node) {
    while (!line.empty()) {
      const std::size_t end = line.find_first_of(";{}");
      read_instruction(without_guard(trimmed(line.substr(0, end))), node);
      line.remove_prefix(end == View::npos ? line.size() : end + 1);
    }
  }

  void read_instruction(View text, Node& node) {
    node.matrix = node.matrix ||
                  begins_with_any(text, {"mma.sync", "mma.sp", "wmma.mma", "wgmma.mma_async", "tcgen05.mma"});
    if (node.texture.empty() &&
        begins_with_any(text, {"tex.", "tld4.", "txq.", "suld.", "sust.", "sured.", "suq."})) {
      node.texture = text.substr(0, text.find_first_of(" \t"));
    }
    if (!text.starts_with("st.") && !text.starts_with("//")) {
      add_uses(text, node);
    }
  }

  // Registers and labels begin with another character.
  void add_uses(View text, Node& node) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = at;
      while (at < text.size() && is_of_symbol(text[at])) {
        ++at;
      }
      const bool is_name = at > begin && (begin == 0 || text[begin - 1] != '%');
      if (is_name && nodes_.contains(text.substr(begin, at - begin))) {
        node.uses.insert(text.substr(begin, at - begin));
      }
      at += at == begin ? 1 : 0;
    }
  }

  PtxKernel reached(View entry) const {
    PtxKernel kernel;
    kernel.uses = parameter_uses(entry, nodes_.at(entry).body);
    std::vector<View> open{entry};
    std::unordered_set<View> seen{entry};
    while (!open.empty()) {
      const View name = open.back();
      const Node& node = nodes_.at(name);
      open.pop_back();
      kernel.has_tensor_cores = kernel.has_tensor_cores || node.matrix;
      if (kernel.texture_instruction.empty()) {
        kernel.texture_instruction = node.texture;
      }
      if (module_.variables.contains(name)) {
        kernel.variables.emplace_back(name);
      }
      std::ranges::copy_if(node.uses, std::back_inserter(open),
                           [&](View used) { return seen.insert(used).second; });
    }
    std::ranges::sort(kernel.variables);
    return kernel;
  }

  PtxModule module_;
  std::unordered_map<View, Node> nodes_;
  std::vector<std::pair<Node*, View>> initializers_;  // a node stays where it is
};

}  // namespace

PtxModule read_ptx(std::string_view ptx) { return Reader(ptx).module(); }

}  // namespace cubind::worker
