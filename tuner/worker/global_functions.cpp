#include "tuner/worker/global_functions.hpp"

#include <algorithm>

#include "base/identifier.hpp"

namespace cubind::worker {
namespace {

using View = std::string_view;

constexpr View kGlobal = "__global__";

// "void scale": scale.
View last_word(View text) {
  const std::size_t end = text.find_last_not_of(" \t\n") + 1;
  std::size_t begin = end;
  while (begin > 0 && (is_letter(text[begin - 1]) || is_digit(text[begin - 1]))) {
    --begin;
  }
  return text.substr(begin, end - begin);
}

}  // namespace

std::vector<std::string> global_functions(View source) {
  std::vector<std::string> names;
  for (std::size_t at = 0; (at = source.find(kGlobal, at)) != View::npos;) {
    at += kGlobal.size();
    const View head = source.substr(at, std::min(source.find_first_of("{;", at), source.size()) - at);
    for (std::size_t open = 0; (open = head.find('(', open)) != View::npos; ++open) {
      const View name = last_word(head.substr(0, open));
      if (!name.empty() && !name.starts_with("__")) {  // __launch_bounds__(256)
        if (std::ranges::find(names, name) == names.end()) {
          names.emplace_back(name);
        }
        break;
      }
    }
  }
  return names;
}

}  // namespace cubind::worker
