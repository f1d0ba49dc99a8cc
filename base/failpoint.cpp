#include "base/failpoint.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace cubind {

void failpoint(std::string_view name) {
  static const char* const variable = std::getenv("CUBIND_FAILPOINTS");
  std::string_view rest = variable ? variable : "";
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || entry.substr(0, equals) != name) {
      continue;
    }
    unsigned milliseconds = 0;
    std::from_chars(entry.data() + equals + 1, entry.data() + entry.size(), milliseconds);
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  }
}

}  // namespace cubind
