#include "tests/fakes/browser.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <sstream>

#include "base/file.hpp"
#include "tests/fakes/program_run.hpp"
#include "tests/support/skip.hpp"

namespace cubind::test {
namespace {

constexpr const char* kBrowser = "/usr/bin/chromium";

}  // namespace

bool has_browser() {
  const bool found = std::filesystem::exists(kBrowser);
  if (!found) {
    skip_test(std::string(kBrowser) + " is not on this machine: ./dev deps test");
  }
  return found;
}

Shown show_address(const std::string& address) {
  const TempDir folder;
  const std::string home = folder.path().string();
  ProgramRun run;
  run.program = kBrowser;
  run.arguments = {"--headless",
                   "--no-sandbox",
                   "--disable-gpu",
                   "--disable-dev-shm-usage",
                   "--enable-logging=stderr",
                   "--user-data-dir=" + home + "/profile",
                   "--virtual-time-budget=9000",
                   "--dump-dom",
                   address};
  run.environment = {"HOME=" + home, "PATH=/usr/bin:/bin"};
  run.limit = std::chrono::seconds(100);
  const ProgramResult result = run_program(run);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  Shown shown;
  const std::size_t begin = result.out.find("<main"), end = result.out.find("</main>");
  REQUIRE(begin < end);
  shown.main = result.out.substr(begin, end - begin);
  shown.before = result.out.substr(0, begin);
  std::istringstream lines(result.err);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("CONSOLE") != std::string::npos) {
      shown.console.push_back(line);
    }
  }
  return shown;
}

Shown show(const std::string& page) {
  const TempDir folder;
  write_file_atomic(folder.path() / "report.html", page);
  return show_address("file://" + folder.path().string() + "/report.html");
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

}  // namespace cubind::test
