#include "tuner/worker/parameter_uses.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/identifier.hpp"
#include "base/text.hpp"

namespace cubind::worker {
namespace {

using View = std::string_view;
using Numbers = std::set<std::uint32_t>;

constexpr std::uint32_t kRead = UINT32_MAX;  // stands for an address that was read from memory

struct Instruction {
  View operation, target, operands;  // target: the operands before the first comma
};

bool begins_with_one_of(View operation, std::initializer_list<View> names) {
  return std::ranges::any_of(names, [&](View name) { return operation.starts_with(name); });
}

// Without labels, and without the guard of a predicated one: "$L1: @%p1 st.global.f32 [%rd1], %f1".
Instruction instruction_of(View text) {
  text = text.substr(0, text.find("//"));
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of("{} \t"), text.size()));
    const View word = text.substr(0, text.find_first_of(" \t"));
    text.remove_prefix(word.size());
    if (word.empty() || (!word.ends_with(':') && !word.starts_with('@'))) {
      return {word, trimmed(text.substr(0, text.find(','))), text};
    }
  }
}

std::vector<Instruction> instructions_of(View body) {
  std::vector<Instruction> found;
  while (!body.empty()) {
    const std::size_t end = std::min(body.find_first_of(";\n"), body.size());
    found.push_back(instruction_of(body.substr(0, end)));
    body.remove_prefix(std::min(end + 1, body.size()));
  }
  std::erase_if(
      found, [](const Instruction& one) { return one.operation.empty() || one.operation.starts_with('.'); });
  return found;
}

std::vector<View> registers_of(View operands) {
  std::vector<View> found;
  for (std::size_t at = 0; (at = operands.find('%', at)) != View::npos;) {
    std::size_t end = at + 1;
    while (end < operands.size() && (is_letter(operands[end]) || is_digit(operands[end]))) {
      ++end;
    }
    found.push_back(operands.substr(at, end - at));
    at = end;
  }
  return found;
}

// "[%rd1+16]": %rd1. Empty: the operands have none.
View address_of(View operands) {
  const std::size_t open = operands.find('[');
  const View inner = open == View::npos ? View() : trimmed(operands.substr(open + 1));
  return inner.substr(0, inner.find_first_of("+], \t"));
}

// Of several spaces the destination's is the first.
bool writes_global(View operation) {
  const std::size_t other =
      std::min({operation.find(".shared"), operation.find(".local"), operation.find(".param")});
  return begins_with_one_of(operation, {"st.", "atom.", "red.", "multimem.", "cp.", "wmma.store."}) &&
         operation.find(".global") <= other;
}

/// The parameters that each register may be made from.
using Reached = std::unordered_map<View, Numbers>;

Numbers made_by(const Instruction& one, const std::string& parameter, Reached& reached) {
  Numbers made;
  if (one.operation.starts_with("ld.param")) {
    const View address = address_of(one.operands);
    std::uint32_t number = 0;
    if (address.starts_with(parameter)) {
      std::from_chars(address.data() + parameter.size(), address.data() + address.size(), number);
      made.insert(number);
    }
  } else if (one.operation.starts_with("ld")) {
    if (one.operation.ends_with("64")) {
      made.insert(kRead);
    }
  } else {
    for (const View name :
         registers_of(one.operands.substr(one.operands.find(one.target) + one.target.size()))) {
      made.insert(reached[name].begin(), reached[name].end());
    }
  }
  return made;
}

/// One pass over the instructions; whether it found more.
bool spread(const std::vector<Instruction>& instructions, const std::string& parameter, Reached& reached) {
  bool found = false;
  for (const Instruction& one : instructions) {
    if (one.target.starts_with('[')) {
      continue;  // it sets no register
    }
    const Numbers made = made_by(one, parameter, reached);
    for (const View name : registers_of(one.target)) {
      const std::size_t before = reached[name].size();
      reached[name].insert(made.begin(), made.end());
      found = found || reached[name].size() > before;
    }
  }
  return found;
}

Numbers written_by(const Instruction& one, Reached& reached, bool& known) {
  const View address = address_of(one.operands);
  if (!writes_global(one.operation) || address.empty()) {
    return {};
  }
  const Numbers& parameters = reached[address];
  known = known && !parameters.empty() && !parameters.contains(kRead);
  return parameters;
}

// An address that is stored, or taken of the parameter itself, may be read through anywhere.
Numbers loaded_by(const Instruction& one, const std::string& parameter, Reached& reached) {
  Numbers loaded;
  View operands = one.operands;
  if (one.operation.starts_with("ld.param")) {
    return loaded;
  }
  if (const std::size_t at = operands.find(parameter); at != View::npos) {
    std::uint32_t number = 0;
    std::from_chars(operands.data() + at + parameter.size(), operands.data() + operands.size(), number);
    loaded.insert(number);
  }
  if (begins_with_one_of(one.operation, {"st.", "red."})) {
    operands.remove_prefix(std::min(operands.find(']'), operands.size()));
  } else if (operands.find('[') == View::npos || begins_with_one_of(one.operation, {"prefetch", "discard"})) {
    return loaded;
  }
  for (const View name : registers_of(operands)) {
    loaded.insert(reached[name].begin(), reached[name].end());
  }
  return loaded;
}

}  // namespace

ParameterUses parameter_uses(View symbol, View body) {
  const std::string parameter = std::string(symbol) + "_param_";
  const std::vector<Instruction> instructions = instructions_of(body);
  Reached reached;
  while (spread(instructions, parameter, reached)) {
  }
  Numbers written, loaded;
  bool knows_written = true;
  for (const Instruction& one : instructions) {
    if (one.operation.starts_with("call")) {
      return {};
    }
    written.merge(written_by(one, reached, knows_written));
    loaded.merge(loaded_by(one, parameter, reached));
  }
  loaded.erase(kRead);
  return {knows_written ? std::optional(std::move(written)) : std::nullopt, std::move(loaded)};
}

}  // namespace cubind::worker
