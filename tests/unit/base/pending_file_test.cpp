#include "base/pending_file.hpp"

#include <catch2/catch.hpp>

#include <iterator>

#include "base/file.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind {
namespace {

using test::error_of;

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

}  // namespace
}  // namespace cubind
