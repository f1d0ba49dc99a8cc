#include "tuner/spec/placeholders.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/identifier.hpp"
#include "base/text.hpp"

namespace cubind {

std::vector<std::string> placeholders(std::string_view text, std::string_view where) {
  const auto fail = [&](std::string cause) {
    throw Error(ErrorCode::InvalidArgument, std::string(where), std::move(cause));
  };
  std::vector<std::string> names;
  std::size_t at = 0;
  while ((at = text.find_first_of("{}", at)) != std::string_view::npos) {
    if (text[at] == '}') {
      fail("\"}\" at character " + std::to_string(at + 1) + " has no \"{\"");
    }
    const auto close = text.find_first_of("{}", at + 1);
    if (close == std::string_view::npos || text[close] == '{') {
      fail("\"{\" at character " + std::to_string(at + 1) + " has no \"}\"");
    }
    std::string name(text.substr(at + 1, close - at - 1));
    if (!is_identifier(name)) {
      fail(quoted(name) + " in braces is not a name, write {T} or {THREADS}");
    }
    if (std::ranges::find(names, name) == names.end()) {
      names.push_back(std::move(name));
    }
    at = close + 1;
  }
  return names;
}

bool has_placeholders(std::string_view text) { return text.find('{') != std::string_view::npos; }

std::string replace_placeholders(std::string_view text,
                                 const std::function<std::string(std::string_view)>& value) {
  std::string result;
  while (true) {
    const auto open = text.find('{');
    const auto close = text.find('}', open == std::string_view::npos ? 0 : open);
    result += text.substr(0, open);
    if (open == std::string_view::npos || close == std::string_view::npos) {
      return result;
    }
    result += value(text.substr(open + 1, close - open - 1));
    text.remove_prefix(close + 1);
  }
}

}  // namespace cubind
