#include "base/pending_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <iterator>

#include "base/file.hpp"
#include "tests/support/refusal_of.hpp"
#include "tests/support/skip.hpp"

namespace cubind {
namespace {

using test::code_of;

namespace fs = std::filesystem;

std::ptrdiff_t files_in(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

TEST_CASE("a pending file has its name when it is committed and never before") {
  const TempDir folder;
  const fs::path file = folder.path() / "f";
  PendingFile pending(file);
  pending.append("one ");
  pending.append("two");
  CHECK_FALSE(fs::exists(file));
  pending.commit(0640);
  CHECK(read_file(file) == "one two");
  CHECK((fs::status(file).permissions() & fs::perms::all) == static_cast<fs::perms>(0640));
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("a pending file that is given up leaves what was there") {
  const TempDir folder;
  const fs::path file = folder.path() / "f";
  write_file_atomic(file, "earlier");
  {
    PendingFile pending(file);
    pending.append("later");
  }
  CHECK(read_file(file) == "earlier");
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("a pending file of a process that is killed leaves nothing") {
  const TempDir folder;
  if (!UniqueFd(::open(folder.path().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600))) {
    return test::skip_test("this file system has no files without a name");
  }
  const pid_t child = ::fork();
  if (child == 0) {
    PendingFile pending(folder.path() / "f");
    pending.append("much");
    ::raise(SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  CHECK(files_in(folder.path()) == 0);
}

TEST_CASE("only a file is replaced and a link leads to it") {
  const TempDir folder;
  const fs::path file = folder.path() / "f";
  CHECK(replaceable_file(file) == file);
  write_file_atomic(file, "old");
  fs::create_symlink("f", folder.path() / "link");
  CHECK(replaceable_file(folder.path() / "link") == canonical_path(file));
  for (const fs::path& other : {folder.path(), fs::path("/dev/null")}) {
    CHECK(code_of([&] { replaceable_file(other); }) == ErrorCode::InvalidArgument);
  }
}

}  // namespace
}  // namespace cubind
