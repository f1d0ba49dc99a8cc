// Pages in a browser: Chromium from ./dev deps test, else the tests are skipped.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cubind::test {

/// False: the test is skipped.
bool has_browser();

struct Shown {
  std::string main;    // the element, as scripts have left it after nine seconds of the page's own time
  std::string before;  // what precedes it
  std::vector<std::string>
      console;  // errors, and what the content policy has refused: every request elsewhere
};

Shown show_address(const std::string& address);
/// A page in a file.
Shown show(const std::string& page);

std::size_t count(const std::string& text, const std::string& part);

}  // namespace cubind::test
