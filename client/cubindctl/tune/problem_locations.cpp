#include "client/cubindctl/tune/problem_locations.hpp"

#include <charconv>
#include <string_view>

#include "base/error.hpp"

namespace cubind::ctl {
namespace {

/// The index of the problem that a message begins with; `count` or more where it begins with none.
std::size_t problem_of(std::string_view message, std::size_t count) {
  constexpr std::string_view kOne = "problem", kListed = "problems[";
  std::size_t index = count;
  if (message.starts_with(kListed)) {
    const char* const end = message.data() + message.size();
    const char* const behind = std::from_chars(message.data() + kListed.size(), end, index).ptr;
    return behind != end && *behind == ']' ? index : count;
  }
  const bool one = message.starts_with(kOne) && message.substr(kOne.size()).find_first_of(".:") == 0;
  return one && count == 1 ? 0 : count;
}

}  // namespace

void with_locations(const std::vector<std::string>& locations, const std::function<void()>& ask) {
  try {
    ask();
  } catch (const Error& error) {
    const std::string message = error.what();
    const std::size_t colon = message.find(": ");
    const std::size_t index = problem_of(message, locations.size());
    if (colon == std::string::npos || index >= locations.size()) {
      throw;
    }
    throw Error(error.code(), locations[index], message.substr(colon + 2));
  }
}

}  // namespace cubind::ctl
