// cubindctl backup, and cubind --fsck on what it made.
#include <catch2/catch.hpp>

#include <sys/stat.h>

#include <filesystem>
#include <iterator>

#include "base/file.hpp"
#include "tests/service/cubindctl/live.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

ProgramResult fsck(const std::filesystem::path& store) {
  ProgramRun run;
  run.program = "cubind";
  run.arguments = {"--fsck", "--db", store.string()};
  return run_program(run);
}

TEST_CASE("backup writes a store for its owner alone that passes the check") {
  TinyDaemon daemon;
  const TempDir folder;
  const auto file = folder.path() / "backup.db";
  const ProgramResult made = ctl(daemon, {"backup", "-o", file.string()});
  CHECK(made.exit_code == 0);
  CHECK_THAT(made.out, Contains(file.string()));
  CHECK((std::filesystem::status(file).permissions() & std::filesystem::perms::all) ==
        (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
  const ProgramResult checked = fsck(file);
  CHECK(checked.exit_code == 0);
  CHECK_THAT(checked.out, Contains("the store is sound"));
}

TEST_CASE("a backup that fails leaves no file and the earlier one as it was") {
  const TempDir folder;
  const auto file = folder.path() / "backup.db";
  write_file_atomic(file, "earlier");
  CHECK(ctl("unix:///nowhere/s", {"backup", "-o", file.string()}).exit_code == 3);
  CHECK(read_file(file) == "earlier");
  CHECK(std::ranges::distance(std::filesystem::directory_iterator(folder.path())) == 1);
}

TEST_CASE("a backup replaces no pipe and no device") {
  TinyDaemon daemon;
  const TempDir folder;
  const auto pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const ProgramResult refused = ctl(daemon, {"backup", "-o", pipe.string()});
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, Contains(pipe.string()) && Contains("name a file"));
  CHECK(std::filesystem::is_fifo(pipe));
}

TEST_CASE("the check tells damage and a store that cannot be checked apart") {
  const TempDir folder;
  CHECK(fsck(folder.path() / "none.db").exit_code == 2);
  TinyDaemon daemon;
  const auto file = folder.path() / "backup.db";
  REQUIRE(ctl(daemon, {"backup", "-o", file.string()}).exit_code == 0);
  std::string bytes = read_file(file);
  std::fill(bytes.begin() + 4096, bytes.begin() + 8192, '\x5a');
  write_file_atomic(file, bytes, 0600);
  const ProgramResult checked = fsck(file);
  CHECK(checked.exit_code == 1);
  CHECK_THAT(checked.out, Contains("damage: ") && Contains("put a backup in its place"));
}

}  // namespace
}  // namespace cubind::test
